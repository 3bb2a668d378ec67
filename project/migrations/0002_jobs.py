"""Who may look at long jobs, and who may submit, cancel and adopt them."""

from typing import Any

from django.db import migrations

from project import roles

LOOK = ("jobworker.view_job", "jobworker.view_deployment", "jobworker.view_image")
OPERATE = (
    *LOOK,
    "jobworker.submit_job",
    "jobworker.cancel_job",
    "jobworker.adopt_job",
)


def give(apps: Any, schema_editor: Any) -> None:
    operating = (
        roles.OPERATOR,
        roles.SCHEDULER_MANAGER,
        roles.TENANT_ADMINISTRATOR,
        roles.PLATFORM_ADMINISTRATOR,
    )
    granted = {roles.VIEWER: LOOK, **dict.fromkeys(operating, OPERATE)}
    for group in (roles.TENANT_ADMINISTRATOR, roles.PLATFORM_ADMINISTRATOR):
        granted[group] = (*OPERATE, "jobworker.change_deployment")
    roles.give(apps, schema_editor, granted)


class Migration(migrations.Migration):
    dependencies = [
        ("project", "0001_roles"),
        ("jobworker", "0002_deployments"),
    ]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
