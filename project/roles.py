"""roles: how migrations give permissions to the groups that operators are put into.

A release that brings a permission brings a migration here that gives it, once: what an
installation took from a group, or added to it, stays as it is.
"""

from collections.abc import Mapping
from typing import Any

from django.apps import apps as installed
from django.contrib.auth.management import create_permissions

VIEWER = "Viewer"
OPERATOR = "Operator"
SCHEDULER_MANAGER = "Scheduler manager"
TENANT_ADMINISTRATOR = "Tenant administrator"
PLATFORM_ADMINISTRATOR = "Platform administrator"
ROLES = (
    VIEWER,
    OPERATOR,
    SCHEDULER_MANAGER,
    TENANT_ADMINISTRATOR,
    PLATFORM_ADMINISTRATOR,
)


def give(apps: Any, schema_editor: Any, granted: Mapping[str, tuple[str, ...]]) -> None:
    """Add permissions ("audit.view_run") to groups, making what is not there yet.

    Django makes permissions after all migrations only, which is too late for this one.
    """
    alias = schema_editor.connection.alias
    for config in installed.get_app_configs():
        create_permissions(config, verbosity=0, using=alias, apps=apps)
    known = {
        f"{row.content_type.app_label}.{row.codename}": row
        for row in apps.get_model("auth", "Permission")
        .objects.using(alias)
        .select_related("content_type")
    }
    groups = apps.get_model("auth", "Group").objects.using(alias)
    for name, permissions in granted.items():
        group, _ = groups.get_or_create(name=name)
        group.permissions.add(*(known[one] for one in permissions))
