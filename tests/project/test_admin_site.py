"""The shell: the menu in the groups operators know, for whom, and the sign-in page."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from tests import factories
from workqueue import live
from workqueue.models import Membership

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    live.forget()
    yield
    live.forget()


def menu(client: Client) -> dict[str, list[str]]:
    groups = client.get("/admin/").context_data["available_apps"]
    return {
        group["name"]: [entry["name"] for entry in group["models"]] for group in groups
    }


def test_the_menu_has_the_groups_and_entries_of_the_design_in_their_order(client):
    client.force_login(factories.superuser())
    found = menu(client)
    assert found["Global Settings"] == ["Settings", "Job Worker"]
    assert found["Audit"] == [
        "Scheduler Audit Logs",
        "Server Audit Logs",
        "Ticks",
        "Job Logs",
        "Changes",
        "Metrics",
    ]
    assert found["Queue"] == [
        "Items",
        "Jobs",
        "Timetable",
        "Pauses",
        "Bulk operations",
    ]
    assert found["Deployments"] == ["Deployments", "Images"]
    assert found["Tenants"] == ["Tenants", "Memberships"]
    assert found["People"] == ["Users", "Groups", "Sign-in locks"]
    names = list(found)
    assert names[:4] == ["Global Settings", "Audit", "Queue", "Deployments"]
    assert names[-2:] == ["Tenants", "People"]


def test_every_entry_of_the_menu_opens(client):
    client.force_login(factories.superuser())
    for group in client.get("/admin/").context_data["available_apps"]:
        for entry in group["models"]:
            response = client.get(entry["admin_url"])
            assert response.status_code == 200, entry["name"]


def test_an_entry_is_marked_on_its_own_page_and_on_no_other(client):
    client.force_login(factories.superuser())
    for name in ("nodes", "ticks", "timetable"):
        text = client.get(reverse(f"admin:{name}")).content.decode()
        assert (
            text.count('aria-current="page">') == 2
        )  # the menu's and the breadcrumb's
        assert text.count("current-model") == 1


def test_a_tenants_staff_sees_no_page_of_the_platform_whatever_its_permissions(client):
    member = factories.member(
        factories.tenant("acme"), role=Membership.Role.ADMINISTRATOR
    )
    member.user_permissions.set(Permission.objects.all())
    client.force_login(member)
    found = menu(client)
    assert "Global Settings" not in found
    assert found["Audit"] == ["Scheduler Audit Logs", "Job Logs", "Changes", "Metrics"]
    assert found["Queue"] == ["Items", "Jobs", "Pauses", "Bulk operations"]


def test_no_entry_leads_to_a_page_that_refuses_its_reader(client):
    for codenames in (
        [],
        ["view_run"],
        ["view_workitem", "view_pause"],
        ["view_node", "view_tick"],
    ):
        reader = factories.member(factories.platform(), role=Membership.Role.VIEWER)
        reader.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(reader)
        for group in client.get("/admin/").context_data["available_apps"]:
            for entry in group["models"]:
                assert client.get(entry["admin_url"]).status_code == 200, (
                    codenames,
                    entry,
                )


def test_somebody_without_any_tenant_is_told_whom_to_ask(client):
    client.force_login(factories.user())
    assert b"belongs to no tenant" in client.get("/admin/").content


def test_the_sheet_comes_after_the_admins_own_and_carries_the_nonce(client):
    client.force_login(factories.superuser())
    response = client.get("/admin/")
    text = response.content.decode()
    assert text.index("admin/css/responsive.css") < text.index("millrace/millrace")
    assert "nonce-" in response["Content-Security-Policy"]
    assert " style=" not in text
    assert "unsafe" not in response["Content-Security-Policy"]


def test_stock_pages_stand_under_operations_and_their_group(client):
    client.force_login(factories.superuser())
    text = client.get(reverse("admin:auth_user_changelist")).content.decode()
    assert ">Operations</a>" in text
    assert "<li>People</li>" in text
    assert ">Home</a>" not in text
    form = client.get(reverse("admin:auth_user_add")).content.decode()
    assert ">Home</a>" not in form


def test_an_apps_index_is_not_what_anybody_looks_for(client):
    client.force_login(factories.superuser())
    response = client.get("/admin/auth/")
    assert (response.status_code, response["Location"]) == (302, "/admin/")


def test_hostile_user_names_are_shown_as_text(client):
    client.force_login(factories.superuser("<script>alert(1)</script>"))
    assert b"<script>alert(1)" not in client.get("/admin/").content
