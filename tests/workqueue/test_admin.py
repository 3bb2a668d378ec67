"""Tenants, memberships and people: whose they are, who changes them, and what is recorded."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from audit import clock
from audit.models import Change, Run
from tests import factories, screens
from tests.screens import HOSTILE, LIVE
from workqueue.models import Membership, Tenant, WorkItem

pytestmark = pytest.mark.django_db
TENANTS, MEMBERS, USERS, GROUPS = (
    "/admin/workqueue/tenant/",
    "/admin/workqueue/membership/",
    "/admin/auth/user/",
    "/admin/auth/group/",
)
RIGHTS = tuple(
    f"workqueue.{verb}_{model}"
    for verb in ("view", "add", "change", "delete")
    for model in ("tenant", "membership")
)
PEOPLE = tuple(
    f"auth.{verb}_{model}"
    for verb in ("view", "add", "change", "delete")
    for model in ("user", "group")
)


PLACES = {
    f"memberships-{name}_FORMS": "0"
    for name in ("TOTAL", "INITIAL", "MIN_NUM", "MAX_NUM")
}


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def text(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def form(tenant: Tenant, **values: str) -> dict[str, Any]:
    return {
        "slug": tenant.slug,
        "name": tenant.name,
        "is_active": "on",
        "time_zone": "UTC",
        "modules": "",
        **PLACES,
        **values,
    }


def test_a_changed_tenant_is_recorded_with_old_and_new(boss: Client, acme: Tenant):
    response = boss.post(
        f"{TENANTS}{acme.pk}/change/", form(acme, name="Acme Ltd", modules="b\na\na")
    )
    assert response.status_code == 302
    acme.refresh_from_db()
    assert (acme.name, acme.modules) == ("Acme Ltd", ["a", "b"])
    change = Change.objects.get()
    assert (change.who, change.subject, change.verb, change.tenant_id) == (
        "boss",
        "tenant:acme",
        "changed",
        acme.pk,
    )
    assert (change.old["name"], change.new["name"]) == ("Acme", "Acme Ltd")


def test_a_zone_that_does_not_exist_is_refused(boss: Client, acme: Tenant):
    assert "is no time zone" in text(
        boss.post(f"{TENANTS}{acme.pk}/change/", form(acme, time_zone="Mars/Base"))
    )


def test_a_member_is_added_on_the_tenants_page_and_recorded(boss: Client, acme: Tenant):
    anna = factories.user("anna")
    more = {
        "memberships-TOTAL_FORMS": "1",
        "memberships-0-user": str(anna.pk),
        "memberships-0-role": "operator",
        "memberships-0-tenant": str(acme.pk),
    }
    assert (
        boss.post(f"{TENANTS}{acme.pk}/change/", form(acme, **more)).status_code == 302
    )
    assert Membership.objects.get().user == anna
    assert [(row.subject, row.verb, row.new) for row in Change.objects.all()] == [
        ("membership:anna in acme", "created", {"role": "operator"})
    ]


def test_a_tenant_is_removed_only_by_the_verb_that_records_its_items(
    boss: Client, acme: Tenant
):
    screens.pending(acme)
    assert "deletelink" not in text(boss.get(f"{TENANTS}{acme.pk}/change/"))
    assert boss.get(f"{TENANTS}{acme.pk}/delete/").status_code == 403
    assert boss.post(f"{TENANTS}{acme.pk}/delete/", {"post": "yes"}).status_code == 403
    address = f"{TENANTS}{acme.pk}/remove/"
    assert "Its 1 items in the queue" in text(boss.get(address))
    for data in (
        {"slug": "acme", "why": ""},
        {"slug": "other", "why": "left"},
        {"why": "left"},
    ):
        assert boss.post(address, data).status_code == 400
    assert Tenant.objects.filter(pk=acme.pk).exists()
    assert boss.post(address, {"slug": "acme", "why": "left us"})["Location"] == TENANTS
    assert not Tenant.objects.filter(pk=acme.pk).exists()
    assert not WorkItem.objects.exists()
    assert Run.objects.get().outcome == "cancelled"
    assert Change.objects.get(verb="removed").why == "left us"


def test_the_platform_is_never_removed(boss: Client):
    pk = factories.platform().pk
    assert (
        boss.post(f"{TENANTS}{pk}/remove/", {"slug": "x", "why": "x"}).status_code
        == 404
    )
    assert "Remove…" not in text(boss.get(f"{TENANTS}{pk}/change/"))


def test_a_tenants_administrator_sees_and_changes_his_own_alone(acme: Tenant):
    granite = factories.tenant("granite")
    stranger = factories.member(granite, username="stranger")
    anna = screens.signed_in(
        screens.staff(acme, *RIGHTS, role="administrator", username="anna")
    )
    html = (
        text(anna.get(TENANTS))
        + text(anna.get(MEMBERS))
        + text(anna.get(f"{TENANTS}{acme.pk}/change/"))
        + text(anna.get(f"{MEMBERS}add/"))
    )
    assert "acme" in html
    assert "granite" not in html
    assert "stranger" not in html
    foreign = Membership.objects.get(user=stranger).pk
    for address in (
        f"{TENANTS}{granite.pk}/change/",
        f"{TENANTS}{granite.pk}/history/",
        f"{MEMBERS}{foreign}/change/",
        f"{MEMBERS}{foreign}/delete/",
    ):
        assert anna.get(address).status_code == 404
        assert anna.post(address, {"post": "yes"}).status_code == 404
    assert anna.get(f"{TENANTS}{granite.pk}/remove/").status_code == 404
    assert anna.get(f"{TENANTS}{acme.pk}/remove/").status_code == 403
    assert anna.get(f"{TENANTS}add/").status_code == 403
    anna.post(
        f"{MEMBERS}add/",
        {
            "user": User.objects.get(username="anna").pk,
            "tenant": granite.pk,
            "role": "viewer",
        },
    )
    assert Membership.objects.count() == 2


def test_what_the_platform_grants_a_tenants_administrator_cannot_give_himself(
    acme: Tenant,
):
    ended = clock.now() - timedelta(days=1)
    Tenant.objects.filter(pk=acme.pk).update(
        is_active=False, licence_expires_at=ended, modules=["compliance"]
    )
    anna = screens.signed_in(
        screens.staff(acme, *RIGHTS, role="administrator", username="anna")
    )
    address = f"{TENANTS}{acme.pk}/change/"
    asked = form(acme, slug="other", name="Acme Ltd", modules="compliance\ndeployments")
    assert anna.post(address, asked).status_code == 302
    acme.refresh_from_db()
    assert (acme.name, acme.slug, acme.is_active) == ("Acme Ltd", "acme", False)
    assert (acme.licence_expires_at, acme.modules) == (ended, ["compliance"])


def test_no_tenant_is_renamed_to_what_another_is_called(boss: Client, acme: Tenant):
    granite = factories.tenant("granite")
    address = f"{TENANTS}{granite.pk}/change/"
    for taken in ("acme", "ACME"):
        said = text(boss.post(address, form(granite, slug=taken)))
        assert "There is a tenant &#x27;acme&#x27; already." in said
    assert boss.post(address, form(granite, slug="Granite")).status_code == 302


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_does_not_administer_a_tenant_changes_nothing_of_it(
    acme: Tenant, role: str
):
    anna = screens.signed_in(screens.staff(acme, *RIGHTS, role=role))
    mine = Membership.objects.get().pk
    assert (
        anna.post(f"{TENANTS}{acme.pk}/change/", form(acme, name="Mine")).status_code
        == 403
    )
    assert (
        anna.post(f"{MEMBERS}{mine}/change/", {"role": "administrator"}).status_code
        == 403
    )
    assert anna.post(f"{MEMBERS}add/", {}).status_code == 403
    assert Membership.objects.get().role == role


def test_groups_are_the_platforms_and_people_their_administrators(acme: Tenant):
    anna = screens.signed_in(screens.staff(acme, *PEOPLE))
    for address in (
        USERS,
        GROUPS,
        f"{USERS}add/",
        f"{GROUPS}add/",
    ):
        assert anna.get(address).status_code == 403
    html = text(anna.get("/admin/"))
    assert USERS not in html


def test_nobody_makes_himself_a_superuser(boss: Client):
    carl = screens.staff(
        factories.platform(), *PEOPLE, role="administrator", username="carl"
    )
    client = screens.signed_in(carl)
    chief = User.objects.get(username="boss")
    data = {
        "username": "carl",
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        **PLACES,
    }
    assert client.post(f"{USERS}{carl.pk}/change/", data).status_code == 302
    carl.refresh_from_db()
    assert not carl.is_superuser
    for address in (
        f"{USERS}{chief.pk}/password/",
        f"{USERS}{chief.pk}/change/",
        f"{USERS}{chief.pk}/delete/",
        f"{GROUPS}add/",
    ):
        assert (
            client.post(
                address,
                {"password1": "new-secret-1", "password2": "new-secret-1", "name": "x"},
            ).status_code
            == 403
        )
    assert not Group.objects.filter(name="x").exists()


def test_a_new_user_is_recorded_without_the_password(boss: Client):
    data = {
        "username": "dora",
        "usable_password": "true",
        "password1": "correct horse battery",
        "password2": "correct horse battery",
        **PLACES,
    }
    assert boss.post(f"{USERS}add/", data).status_code == 302
    change = Change.objects.get()
    assert (change.subject, change.verb) == ("user:dora", "created")
    assert "correct" not in str(change.new)


@pytest.mark.parametrize("address", [TENANTS, MEMBERS, USERS, GROUPS])
@pytest.mark.parametrize("rows", [3, 50])
def test_a_list_costs_the_same_for_any_number_of_rows(
    boss: Client, address: str, rows: int, django_assert_max_num_queries
):
    for _ in range(rows):
        factories.member(factories.tenant())
        Group.objects.create(name=str(factories.tenant()))
    boss.get(address)
    with django_assert_max_num_queries(10):
        assert text(boss.get(address))


def test_hostile_names_are_text(boss: Client):
    tenant = factories.tenant("hostile", name=HOSTILE)
    factories.member(tenant, username=HOSTILE[:150])
    for address in (
        TENANTS,
        MEMBERS,
        USERS,
        f"{TENANTS}{tenant.pk}/change/",
        f"{TENANTS}{tenant.pk}/remove/",
    ):
        html = text(boss.get(address))
        assert not [
            html[max(html.index(mark) - 60, 0) :][:100]
            for mark in LIVE
            if mark in html and "<" in mark
        ]


def test_anonymous_readers_are_asked_to_sign_in():
    assert [
        Client().get(address).status_code
        for address in (TENANTS, MEMBERS, USERS, GROUPS)
    ] == [302] * 4
