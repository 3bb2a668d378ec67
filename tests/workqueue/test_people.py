"""Who manages whom: nobody gives what he does not have, or touches who has more."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client

from audit.models import Change
from tests import factories, screens
from workqueue import people
from workqueue.models import Membership, Tenant

USERS = "/admin/auth/user/"
PASSWORD = "correct horse battery"


@pytest.mark.once
def test_the_stock_lists_are_replaced_however_often_it_is_asked():
    people.register()
    assert isinstance(admin.site.get_model_admin(User), people.UserAdmin)
    assert isinstance(admin.site.get_model_admin(Group), people.GroupAdmin)


@pytest.fixture
def acme(db: None) -> Tenant:
    return factories.tenant("acme")


@pytest.fixture
def granite(db: None) -> Tenant:
    return factories.tenant("granite")


def of_group(of: Tenant, group: str, role: str, **values: Any) -> User:
    one = factories.member(of, role, **values)
    one.groups.add(Group.objects.get(name=group))
    return one


@pytest.fixture
def anna(acme: Tenant) -> Client:
    """The administrator of acme."""
    return screens.signed_in(
        of_group(acme, "Tenant administrator", "administrator", username="anna")
    )


def form(*places: tuple[Tenant, str], groups: tuple[str, ...] = ()) -> dict[str, Any]:
    rows = {
        f"memberships-{number}-{name}": value
        for number, (tenant, role) in enumerate(places)
        for name, value in (("tenant", tenant.pk), ("role", role))
    }
    return {
        "usable_password": "true",
        "password1": PASSWORD,
        "password2": PASSWORD,
        "is_active": "on",
        "is_staff": "on",
        "groups": [Group.objects.get(name=name).pk for name in groups],
        "memberships-TOTAL_FORMS": len(places),
        "memberships-INITIAL_FORMS": "0",
        **rows,
    }


def test_a_tenants_administrator_makes_staff_of_his_tenant(anna: Client, acme: Tenant):
    data = form((acme, "operator"), groups=("Operator",))
    response = anna.post(f"{USERS}add/", {"username": "olga", **data})
    olga = User.objects.get(username="olga")
    assert response["Location"] == f"{USERS}{olga.pk}/change/"
    assert olga.has_perm("workqueue.cancel_item")
    assert olga.check_password(PASSWORD)
    assert Membership.objects.get(user=olga).role == "operator"
    assert "olga" in anna.get(USERS).content.decode()
    told = Change.objects.filter(subject__contains="olga").order_by("id")
    assert [(row.verb, row.who) for row in told] == [("created", "anna")] * 2
    assert PASSWORD not in str([row.new for row in told])


def test_staff_without_a_tenant_or_of_another_one_is_refused(
    anna: Client, granite: Tenant
):
    for places in ((), ((granite, "viewer"),)):
        response = anna.post(f"{USERS}add/", {"username": "olga", **form(*places)})
        assert response.status_code == 200
        assert not User.objects.filter(username="olga").exists()


def test_nobody_gives_a_group_that_holds_more_than_he_does(anna: Client, acme: Tenant):
    html = anna.get(f"{USERS}add/").content.decode()
    assert "Tenant administrator" in html
    assert "Scheduler manager" not in html
    assert "Platform administrator" not in html
    for group in ("Scheduler manager", "Platform administrator"):
        data = form((acme, "operator"), groups=(group,))
        assert anna.post(f"{USERS}add/", {"username": "x", **data}).status_code == 200
        me = User.objects.get(username="anna")
        mine = {"username": "anna", "is_superuser": "on", **data}
        assert anna.post(f"{USERS}{me.pk}/change/", mine).status_code == 200
        assert not me.groups.filter(name=group).exists()
    assert not User.objects.filter(username="x").exists()


def test_who_holds_more_or_belongs_elsewhere_too_is_shown_and_not_changed(
    anna: Client, acme: Tenant, granite: Tenant
):
    chief = of_group(acme, "Scheduler manager", "operator", username="chief")
    shared = of_group(acme, "Viewer", "viewer", username="shared")
    Membership.objects.create(user=shared, tenant=granite, role="viewer")
    root = factories.superuser("root")
    Membership.objects.create(user=root, tenant=acme, role="viewer")
    for one in (chief, shared, root):
        page = anna.get(f"{USERS}{one.pk}/change/").content.decode()
        assert one.username in page
        assert "granite" not in page
        assert 'name="_save"' not in page
        for address in ("change/", "password/", "delete/"):
            answer = anna.post(f"{USERS}{one.pk}/{address}", form((acme, "viewer")))
            assert answer.status_code == 403
        before = one.password
        one.refresh_from_db()
        assert one.password == before


def test_people_of_other_tenants_do_not_exist(anna: Client, granite: Tenant):
    other = of_group(granite, "Viewer", "viewer", username="stranger")
    assert "stranger" not in anna.get(USERS).content.decode()
    for address in ("change/", "password/", "history/"):
        assert anna.get(f"{USERS}{other.pk}/{address}").status_code == 404
    found = anna.get(
        "/admin/autocomplete/?app_label=workqueue&model_name=membership&field_name=user"
    )
    assert "stranger" not in found.content.decode()


def test_the_history_of_a_user_does_not_say_where_else_he_belonged(
    anna: Client, acme: Tenant, granite: Tenant
):
    boss = screens.signed_in(factories.superuser("boss"))
    data = form((acme, "viewer"), (granite, "viewer"))
    boss.post(f"{USERS}add/", {"username": "olga", **data})
    olga = User.objects.get(username="olga")
    Membership.objects.get(user=olga, tenant=granite).delete()
    assert "granite" not in anna.get(f"{USERS}{olga.pk}/history/").content.decode()


def test_setting_a_password_is_recorded_without_it(anna: Client, acme: Tenant):
    olga = of_group(acme, "Operator", "operator", username="olga")
    data = {"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    address = f"{USERS}{olga.pk}/password/"
    assert anna.post(address, {**data, "password2": "other"}).status_code == 200
    assert not Change.objects.exists()
    assert anna.post(address, {**data, "set-password": "1"}).status_code == 302
    told = Change.objects.get()
    assert (told.who, told.verb, told.new) == (
        "anna",
        "changed",
        {"sign_in": "password set"},
    )
    assert told.tenant_id == acme.pk
    olga.refresh_from_db()
    assert olga.check_password(PASSWORD)


def test_a_weak_password_is_refused(anna: Client, acme: Tenant):
    for weak in ("short", "password", "8472910", "olga-operator"):
        data = {**form((acme, "viewer")), "password1": weak, "password2": weak}
        named = {"username": "olga-operator", **data}
        assert anna.post(f"{USERS}add/", named).status_code == 200
    assert not User.objects.filter(username="olga-operator").exists()


def test_a_platform_administrator_manages_everybody_but_superusers(granite: Tenant):
    carl = screens.signed_in(
        of_group(factories.platform(), "Platform administrator", "administrator")
    )
    root = factories.superuser("root")
    other = of_group(granite, "Scheduler manager", "operator", username="other")
    assert 'name="_save"' in carl.get(f"{USERS}{other.pk}/change/").content.decode()
    assert carl.post(f"{USERS}{root.pk}/change/", form()).status_code == 403
    data = form(groups=("Platform administrator",))
    assert carl.post(f"{USERS}add/", {"username": "new", **data}).status_code == 302
    assert carl.get("/admin/auth/group/").status_code == 200
    assert carl.get("/admin/auth/group/add/").status_code == 403
