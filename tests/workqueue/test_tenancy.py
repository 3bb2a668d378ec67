"""Tenants: who sees which, and how one goes without anything being lost."""

import random
from threading import Event, Thread
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connections, transaction

from audit import clock
from audit.models import Change, Run
from audit.models import Event as Told
from tests import factories
from workqueue import pauses, tenancy
from workqueue.exceptions import InvalidValues, PlatformStays
from workqueue.models import Membership, Pause, Tenant, WorkItem

BY = {"who": "operator", "origin": "admin"}

pytestmark = pytest.mark.django_db


def item(of: Tenant, handler: str = "a.b", **values: Any) -> WorkItem:
    return factories.item(
        of, handler, **{"tenant_slug": of.slug, "trigger": "slot", **values}
    )


def executing(of: Tenant) -> WorkItem:
    now = clock.now()
    node = factories.node()
    claim = {
        "claim_id": clock.uuid7(),
        "node_id": node.pk,
        "node": str(node),
        "attempts": 1,
    }
    times = {"claimed_at": now, "renewed_at": now, "started_at": now}
    return item(of, "a.c", status="executing", **claim, **times)


def test_a_member_sees_its_tenants_and_no_other() -> None:
    one, two, _ = factories.tenant(), factories.tenant(), factories.tenant()
    user = factories.member(one)
    Membership.objects.create(user=user, tenant=two)
    assert tenancy.scope(user) == {one.pk, two.pk}


def test_superusers_and_members_of_the_platform_see_all() -> None:
    factories.tenant()
    assert tenancy.scope(factories.superuser()) is None
    assert tenancy.scope(factories.member(factories.platform())) is None


def test_strangers_and_the_deactivated_see_none() -> None:
    tenant = factories.tenant()
    assert tenancy.scope(AnonymousUser()) == frozenset()
    assert tenancy.scope(factories.user()) == frozenset()
    assert tenancy.scope(factories.member(tenant, is_active=False)) == frozenset()
    assert tenancy.scope(factories.superuser(is_active=False)) == frozenset()


def test_there_is_one_platform_tenant_made_by_migration() -> None:
    assert tenancy.platform().slug == "platform"


def test_creating_is_recorded_and_told() -> None:
    made = tenancy.create(
        slug=" acme ",
        name="Acme",
        modules=["b", "a", "a"],
        time_zone="Europe/Vienna",
        why="new",
        **BY,
    )
    assert (made.slug, made.modules, made.is_platform) == ("acme", ["a", "b"], False)
    change, event = Change.objects.get(), Told.objects.get()
    assert (change.subject, change.verb, change.tenant_id, change.why) == (
        "tenant:acme",
        "created",
        made.pk,
        "new",
    )
    assert (event.type, event.tenant) == ("tenant.created", "acme")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"slug": "a b"}, "slug"),
        ({"slug": ""}, "slug"),
        ({"slug": "x" * 65}, "slug"),
        ({"slug": "platform"}, "slug"),
        ({"slug": "<script>"}, "slug"),
        ({"name": ""}, "name"),
        ({"time_zone": "Europe/Atlantis"}, "time_zone"),
    ],
)
def test_a_tenant_that_cannot_be_is_refused_by_field(
    given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidValues) as refused:
        tenancy.create(**{"slug": "acme", "name": "Acme", **given, **BY})
    assert field in refused.value.problems
    assert not Change.objects.exists()


def test_a_nul_in_the_name_is_stored_visibly() -> None:
    made = tenancy.create(slug="acme", name="Ac\x00me", **BY)
    made.refresh_from_db()
    assert "\x00" not in made.name
    assert made.name.startswith("Ac")


def test_removing_records_every_live_item_as_cancelled_and_the_ledger_outlives_it() -> (
    None
):
    tenant, other = factories.tenant(), factories.tenant()
    user = factories.member(tenant)
    waiting, running = item(tenant), executing(tenant)
    held = item(tenant, "a.d", status="held")
    stays = item(other)
    pauses.pause(scope="tenant", tenant=tenant, reason="r", **BY)
    assert tenancy.remove(tenant, why="left", **BY) == 3
    runs = {run.item_id: run for run in Run.objects.all()}
    assert set(runs) == {waiting.pk, running.pk, held.pk}
    assert {run.outcome for run in runs.values()} == {"cancelled"}
    assert runs[running.pk].pk == running.claim_id
    assert runs[running.pk].attempt == 1
    assert runs[waiting.pk].summary == "its tenant was removed by operator: left"
    assert runs[waiting.pk].tenant == tenant.slug
    assert list(WorkItem.objects.all()) == [stays]
    assert not Tenant.objects.filter(slug=tenant.slug).exists()
    assert not Pause.objects.exists()
    assert not user.memberships.exists()
    change = Change.objects.latest("id")
    assert (change.verb, change.old["slug"], change.why) == (
        "removed",
        tenant.slug,
        "left",
    )


def test_the_platform_is_not_removed() -> None:
    with pytest.raises(PlatformStays):
        tenancy.remove(factories.platform(), why="x", **BY)
    assert tenancy.platform().is_active


def test_an_item_that_comes_in_while_its_tenant_goes_is_cancelled_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = factories.tenant()

    def delete_late(self: Tenant) -> None:
        Tenant.objects.filter(pk=self.pk)._raw_delete("default")  # type: ignore[attr-defined]
        item(tenant, "a.late")  # a tick that had looked before

    monkeypatch.setattr(Tenant, "delete", delete_late)
    assert tenancy.remove(tenant, why="left", **BY) == 1
    assert Run.objects.get().handler == "a.late"
    assert not WorkItem.objects.exists()


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_of_200_tenants_20_go_at_random_while_items_come_in_and_nobody_else_loses_one() -> (
    None
):
    tenants = [factories.tenant() for _ in range(200)]
    leaving = random.Random(5).sample(tenants, 20)  # noqa: S311
    done, problems = Event(), []

    def enqueue() -> None:
        """As a tick does: for the tenants that are active at the moment."""
        try:
            for number in range(5):
                with transaction.atomic():
                    for tenant in Tenant.objects.active():
                        item(tenant, f"a.{number}")
        except Exception as problem:
            problems.append(problem)
        finally:
            done.set()
            connections.close_all()

    ticker = Thread(target=enqueue)
    ticker.start()
    for tenant in leaving:
        tenancy.remove(tenant, why="left", **BY)
    assert done.wait(60)
    ticker.join(10)
    assert not problems
    gone = {tenant.pk for tenant in leaving}
    # What was live is recorded; what a tick committed after the last look is an item
    # without a tenant, and ended by the next worker that looks.
    tenancy.cancel_orphans()
    assert not WorkItem.objects.filter(tenant_id__in=gone).exists()
    for tenant in set(tenants) - set(leaving):
        assert WorkItem.objects.filter(tenant_id=tenant.pk).count() >= 5
    assert set(Run.objects.values_list("tenant_id", flat=True)) <= gone
    assert set(Run.objects.values_list("outcome", flat=True)) <= {"cancelled"}


@pytest.mark.django_db(transaction=True)
def test_an_item_that_a_tick_made_for_a_removed_tenant_ends_as_cancelled() -> None:
    kept, gone = factories.tenant(), factories.tenant()
    item(kept, "a.kept")
    item(gone, "a.late")
    Tenant.objects.filter(pk=gone.pk).delete()
    assert tenancy.cancel_orphans() == 1
    assert [i.handler for i in WorkItem.objects.all()] == ["a.kept"]
    run = Run.objects.get()
    assert (run.handler, run.outcome, run.summary) == (
        "a.late",
        "cancelled",
        "its tenant was removed",
    )
    assert tenancy.cancel_orphans() == 0
