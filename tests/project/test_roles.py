"""The groups that migrations make: what each may do, and that nothing is out of reach."""

import ast
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import connection

from project import roles
from tests import factories, world
from tests.house.sources import ROOT, SOURCES, name, tree
from workqueue import registry

pytestmark = pytest.mark.django_db
APPS = (*world.APPS, "auth", "axes")


def of(group: str) -> set[str]:
    rows = Group.objects.get(name=group).permissions.select_related("content_type")
    return {f"{row.content_type.app_label}.{row.codename}" for row in rows}


def own_permissions() -> set[str]:
    """Those that our models declare beside Django's four."""
    return {
        f"{model._meta.app_label}.{codename}"
        for model in apps.get_models()
        if model._meta.app_label in APPS
        for codename, _ in model._meta.permissions
    }


def test_the_five_groups_are_there_and_no_other():
    assert set(Group.objects.values_list("name", flat=True)) == set(roles.ROLES)


def test_a_viewer_looks_and_changes_nothing():
    assert all(".view_" in permission for permission in of(roles.VIEWER))


def test_each_role_has_what_the_one_below_has():
    assert of(roles.VIEWER) < of(roles.OPERATOR)
    assert of(roles.OPERATOR) < of(roles.SCHEDULER_MANAGER)
    assert of(roles.OPERATOR) < of(roles.TENANT_ADMINISTRATOR)
    assert of(roles.SCHEDULER_MANAGER) < of(roles.PLATFORM_ADMINISTRATOR)
    assert of(roles.TENANT_ADMINISTRATOR) < of(roles.PLATFORM_ADMINISTRATOR)


def test_a_platform_administrator_needs_no_superuser_for_anything_of_ours():
    assert len(own_permissions()) >= 14
    assert own_permissions() <= of(roles.PLATFORM_ADMINISTRATOR)


def test_only_the_platforms_roles_touch_what_is_the_platforms():
    platform = {
        "workqueue.edit_caps",
        "scheduler.run_schedule",
        "workqueue.add_tenant",
        "workqueue.remove_tenant",
    }
    for group in (roles.VIEWER, roles.OPERATOR, roles.TENANT_ADMINISTRATOR):
        assert not platform & of(group)


def test_what_an_installation_took_from_a_group_stays_taken():
    """A release gives what it brings, once; giving again adds, and removes nothing."""
    group = Group.objects.get(name=roles.OPERATOR)
    export = Permission.objects.get(codename="export")
    group.permissions.remove(export)
    editor = SimpleNamespace(connection=connection)
    roles.give(apps, editor, {roles.OPERATOR: ("workqueue.cancel_item",)})
    assert "audit.export" not in of(roles.OPERATOR)
    assert "workqueue.cancel_item" in of(roles.OPERATOR)


def asked_for() -> dict[str, str]:
    """Every permission that the code names, with the file."""
    return {
        node.value: name(path)
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.partition(".")[0] in APPS
        and node.value.partition(".")[2].partition("_")[0] in VERBS
        and node.value not in registry.rows()
    }


VERBS = {codename.partition(".")[2].partition("_")[0] for codename in own_permissions()}
VERBS |= {"view", "add", "change", "delete"}


def test_every_permission_that_the_code_asks_for_exists():
    """One that does not is refused to all but superusers, silently."""
    there = {
        f"{row.content_type.app_label}.{row.codename}"
        for row in Permission.objects.select_related("content_type")
    }
    found = asked_for()
    assert len(found) > 20
    assert {code: file for code, file in found.items() if code not in there} == {}


def test_a_member_of_a_group_has_its_permissions():
    carl = factories.member(factories.tenant("acme"))
    carl.groups.add(Group.objects.get(name=roles.OPERATOR))
    assert User.objects.get(pk=carl.pk).has_perm("workqueue.cancel_item")


def test_the_docs_name_every_group_and_every_permission_of_our_own():
    text = (ROOT / "docs" / "roles.md").read_text()
    assert [one for one in own_permissions() if f"`{one}`" not in text] == []
    assert [one for one in roles.ROLES if f"| {one} |" not in text] == []
