"""Enqueue: a call joins its transaction; a tick makes one item for every tenant it calls."""

import logging
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from audit import clock
from tests import factories
from tests.scheduler.timetable_for_tests import row
from tests.workqueue.ticking import PLAIN, SLOT, items, tick
from workqueue import enqueue as module
from workqueue import registry, wakeup
from workqueue.eligible import Call
from workqueue.enqueue import Enqueued, anybody, enqueue
from workqueue.exceptions import UnknownHandler
from workqueue.models import WorkItem
from workqueue.registry import LICENSED, Retry

pytestmark = pytest.mark.usefixtures("ticking")
postgresql = pytest.mark.postgresql


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    monkeypatch.setattr(wakeup, "notify", lambda: calls.append(1))
    return calls


# --- calls


def test_a_call_makes_an_item_with_the_rules_of_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme = factories.tenant("acme")
    retry = Retry(attempts=2, base=timedelta(seconds=7), cap=timedelta(seconds=70))
    ruled = row("plain", abandon="hold", time_limit=timedelta(minutes=5), retry=retry)
    monkeypatch.setattr(registry, "row", lambda key: ruled)
    assert enqueue("plain", tenant=acme)
    item = WorkItem.objects.get()
    assert (item.tenant_id, item.tenant_slug, item.handler, item.trigger) == (
        acme.pk,
        "acme",
        "plain",
        "call",
    )
    assert (item.time_limit_s, item.abandon) == (300, "hold")
    assert (item.retry_attempts, item.retry_base_s, item.retry_cap_s) == (2, 7, 70)
    assert (item.status, item.attempts, item.tick_id, item.slot) == (
        "pending",
        0,
        None,
        None,
    )
    assert abs(item.not_before - clock.now()) < timedelta(seconds=5)
    assert item.not_before == item.enqueued_at


def test_a_second_call_while_one_lives_is_refused_and_no_error(
    woken: list[int],
) -> None:
    acme = factories.tenant("acme")
    assert enqueue("plain", tenant=acme)
    assert not enqueue("plain", tenant=acme)
    assert enqueue("plain", tenant=acme, dedup_key="other")
    assert enqueue("plain", tenant=factories.tenant("bolt"))
    assert items() == ["acme", "acme", "bolt"]
    assert len(woken) == 3


def test_a_call_may_wait_for_its_time() -> None:
    later = clock.now().replace(microsecond=0) + timedelta(hours=1)
    enqueue("plain", tenant=factories.tenant("acme"), not_before=later)
    assert WorkItem.objects.get().not_before == later


def test_a_call_for_no_row_of_the_timetable_is_refused() -> None:
    with pytest.raises(UnknownHandler):
        enqueue("retired.handler", tenant=factories.tenant("acme"))


def test_an_item_is_seen_by_nobody_before_the_commit_and_not_after_a_rollback(
    woken: list[int],
) -> None:
    acme = factories.tenant("acme")
    seen: list[int] = []

    def look_from_elsewhere() -> None:
        thread = threading.Thread(
            target=lambda: (
                seen.append(WorkItem.objects.count()),
                connections.close_all(),
            )
        )
        thread.start()
        thread.join(10)

    with transaction.atomic():
        enqueue("plain", tenant=acme)
        look_from_elsewhere()
        assert woken == []
        transaction.set_rollback(True)
    assert seen == [0]
    assert (items(), woken) == ([], [])
    with transaction.atomic():
        enqueue("plain", tenant=acme)
        assert woken == []
    assert (items(), woken) == (["acme"], [1])


def test_a_rolled_back_savepoint_takes_its_item_and_its_wake_up_along(
    woken: list[int],
) -> None:
    acme, bolt = factories.tenant("acme"), factories.tenant("bolt")
    with transaction.atomic():
        enqueue("plain", tenant=acme)
        with transaction.atomic():
            enqueue("plain", tenant=bolt)
            transaction.set_rollback(True)
    assert (items(), woken) == (["acme"], [1])


@postgresql
def test_a_call_in_an_old_transaction_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    acme, bolt = factories.tenant("acme"), factories.tenant("bolt")
    caplog.set_level(logging.WARNING, "workqueue.enqueue")
    enqueue("plain", tenant=acme)
    assert caplog.messages == []
    monkeypatch.setattr(module, "LONG_TRANSACTION", 0.0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.05)")
        enqueue("plain", tenant=bolt)
    [said] = caplog.messages
    assert "tenant=bolt" in said
    assert "leave this tenant out" in said


# --- ticks


def test_a_tick_makes_an_item_for_every_eligible_tenant(woken: list[int]) -> None:
    for slug in ("acme", "bolt"):
        factories.tenant(slug)
    found = tick(tick_id=7)
    assert found == Enqueued(enqueued=3)
    assert items() == ["acme", "bolt", "platform"]
    one = WorkItem.objects.get(tenant_slug="acme")
    assert (one.tick_id, one.trigger, one.slot, one.dedup_key) == (7, "slot", SLOT, "")
    assert woken == [1]


def test_a_tick_of_platform_scope_makes_one() -> None:
    factories.tenant("acme")
    assert tick(row("plain", scope="platform")) == Enqueued(enqueued=1)
    assert items() == ["platform"]


def test_a_second_tick_counts_what_lives_and_doubles_nothing(woken: list[int]) -> None:
    for slug in ("acme", "bolt", "cube", "dust"):
        factories.tenant(slug)
    tick(tick_id=1)
    WorkItem.objects.filter(tenant_slug="acme").update(status="executing")
    WorkItem.objects.filter(tenant_slug="bolt").update(status="held")
    WorkItem.objects.filter(tenant_slug="cube").delete()
    found = tick(tick_id=2)
    assert found == Enqueued(enqueued=1, still_waiting=2, still_running=1, held=1)
    assert items(tick_id=2) == ["cube"]
    tick(tick_id=3)
    assert woken == [1, 1]  # the third made nothing


def test_the_first_condition_that_does_not_hold_is_counted_with_its_reason() -> None:
    now = clock.now()
    factories.tenant("acme")
    factories.tenant("asleep", is_active=False)
    factories.tenant("expired", licence_expires_at=now - timedelta(seconds=1))
    factories.tenant(
        "both", is_active=False, licence_expires_at=now - timedelta(days=1)
    )
    factories.tenant("licensed", licence_expires_at=now + timedelta(days=1))
    found = tick(replace(PLAIN, eligible=(*PLAIN.eligible, LICENSED)))
    assert items() == ["acme", "licensed", "platform"]
    assert found.not_eligible == {"inactive": 2, "licence expired": 1}


def test_paused_tenants_are_left_out_and_counted() -> None:
    acme, asleep = factories.tenant("acme"), factories.tenant("asleep", is_active=False)
    found = tick(paused=frozenset({acme.pk, asleep.pk}))
    assert found == Enqueued(enqueued=1, paused=1, not_eligible={"inactive": 1})
    assert items() == ["platform"]


def test_with_a_probe_only_tenants_with_work_are_called() -> None:
    factories.tenant("acme", name="Busy acme")
    factories.tenant("bolt")
    probed = row("probed")
    assert tick(probed) == Enqueued(enqueued=3)
    WorkItem.objects.all().delete()
    assert tick(probed, only_due=True) == Enqueued(enqueued=1)
    assert items() == ["acme"]
    assert tick(probed, only_due=True, tick_id=2) == Enqueued(still_waiting=1)


def test_a_probe_of_platform_scope_calls_the_platform_for_anybodys_work() -> None:
    probed = row("probed", scope="platform")
    call = Call(row=probed, now=clock.now(), only_due=True)
    assert not anybody(call)
    assert tick(probed, only_due=True) == Enqueued()
    factories.tenant("acme", name="Busy acme")
    assert anybody(call)
    assert tick(probed, only_due=True) == Enqueued(enqueued=1)
    assert items() == ["platform"]


def test_a_handler_without_a_probe_calls_everybody_in_due_mode_too() -> None:
    factories.tenant("acme")
    assert tick(only_due=True).enqueued == 2


def test_pairs_make_an_item_each_under_their_own_key() -> None:
    acme, asleep = factories.tenant("acme"), factories.tenant("asleep", is_active=False)
    for tenant, username in ((acme, "ann"), (acme, "bob"), (asleep, "cid")):
        factories.member(tenant, username=username)
    paired = row("paired", scope="tests.scheduler.runs.paired.pairs")
    assert tick(paired).enqueued == 2
    keys = WorkItem.objects.order_by("dedup_key").values_list(
        "tenant_slug", "dedup_key"
    )
    assert list(keys) == [("acme", "ann"), ("acme", "bob")]
    WorkItem.objects.filter(dedup_key="ann").delete()
    again = tick(paired, tick_id=2)
    assert (again.enqueued, again.still_waiting) == (1, 1)


def test_a_scope_that_is_no_query_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    paired = row("paired", scope="tests.scheduler.runs.paired.pairs")
    monkeypatch.setattr("tests.scheduler.runs.paired.pairs", lambda now: [(1, "x")])
    with pytest.raises(TypeError, match="must give a QuerySet"):
        tick(paired)
