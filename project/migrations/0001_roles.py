"""The five groups. A role has what stands above it, and its own."""

from typing import Any

from django.db import migrations

from project import roles

VIEWER = (
    "audit.view_run",
    "audit.view_transcript",
    "audit.view_change",
    "workqueue.view_workitem",
    "workqueue.view_pause",
    "workqueue.view_tenant",
    "notifications.view_channel",
    "notifications.view_notification",
    "archival.view_archivalpolicy",
    "archival.view_archivefile",
    # Of the platform: without a membership there, these pages do not exist.
    "workqueue.view_node",
    "workqueue.view_setting",
    "scheduler.view_tick",
    "scheduler.view_schedule",
)
OPERATOR = (
    *VIEWER,
    "audit.export",
    "workqueue.cancel_item",
    "workqueue.retry_item",
    "workqueue.drop_item",
    "workqueue.bulk_items",
    "workqueue.pause_queue",
    "workqueue.resume_queue",
    "notifications.retry_notification",
    "notifications.suppress_notification",
    "notifications.test_channel",
    "archival.verify_archivefile",
)
SCHEDULER_MANAGER = (
    *OPERATOR,
    "scheduler.run_schedule",
    "scheduler.change_cadence",
    "workqueue.edit_caps",
)
TENANT_ADMINISTRATOR = (
    *OPERATOR,
    "workqueue.change_tenant",
    "workqueue.view_membership",
    "workqueue.add_membership",
    "workqueue.change_membership",
    "workqueue.delete_membership",
    "auth.view_user",
    "auth.add_user",
    "auth.change_user",
    "notifications.add_channel",
    "notifications.change_channel",
    "notifications.delete_channel",
    "archival.add_archivalpolicy",
    "archival.change_archivalpolicy",
    "archival.delete_archivalpolicy",
    "archival.download_archivefile",
    "archival.restore_archivefile",
)
PLATFORM_ADMINISTRATOR = (
    *TENANT_ADMINISTRATOR,
    *SCHEDULER_MANAGER,
    "workqueue.add_tenant",
    "workqueue.remove_tenant",
    "auth.delete_user",
    "auth.view_group",
    "axes.view_accessattempt",
    "axes.delete_accessattempt",
)


def make(apps: Any, schema_editor: Any) -> None:
    roles.give(
        apps,
        schema_editor,
        {
            roles.VIEWER: VIEWER,
            roles.OPERATOR: OPERATOR,
            roles.SCHEDULER_MANAGER: SCHEDULER_MANAGER,
            roles.TENANT_ADMINISTRATOR: TENANT_ADMINISTRATOR,
            roles.PLATFORM_ADMINISTRATOR: PLATFORM_ADMINISTRATOR,
        },
    )


class Migration(migrations.Migration):
    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("axes", "0010_accessattemptexpiration"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("audit", "0003_permissions"),
        ("workqueue", "0003_permissions"),
        ("scheduler", "0003_permissions"),
        ("archival", "0001_initial"),
        ("notifications", "0001_initial"),
    ]

    # Going back leaves the groups: people are in them.
    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
