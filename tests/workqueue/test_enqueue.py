"""Enqueue: a call joins its transaction; a tick makes one item for every tenant it calls."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction

from audit import clock
from tests import databases, factories
from tests.scheduler.timetable_for_tests import row
from tests.waiting import wait_until
from workqueue import around_locks, registry, wakeup
from workqueue import enqueue as module
from workqueue.eligible import Call
from workqueue.enqueue import Enqueued, anybody, enqueue, enqueue_tick
from workqueue.exceptions import UnknownHandler
from workqueue.models import Tenant, WorkItem
from workqueue.registry import LICENSED, Handler, Retry

postgresql = pytest.mark.postgresql
SLOT = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def timetable(settings: Any, transactional_db: None) -> Iterator[None]:
    settings.WORKQUEUE_HANDLERS = "tests.scheduler.timetable_for_tests.TIMETABLE"
    settings.WORKQUEUE_HANDLERS_PACKAGE = "tests.scheduler.runs"
    for cached in (registry.rows, registry.load, registry.due):
        cached.cache_clear()
    yield
    for cached in (registry.rows, registry.load, registry.due):
        cached.cache_clear()


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    monkeypatch.setattr(wakeup, "notify", lambda: calls.append(1))
    return calls


PLAIN = row("plain")


def tick(
    handler: Handler = PLAIN, *, trigger: str = "slot", tick_id: int = 1, **values: Any
) -> Enqueued:
    """One tick, in a transaction of its own."""
    try_last = values.pop("try_last", ())
    call = Call(row=handler, now=clock.now(), **values)
    with transaction.atomic():
        return enqueue_tick(
            call, trigger=trigger, tick_id=tick_id, slot=SLOT, try_last=try_last
        )


def items(**values: Any) -> list[str]:
    """Slugs of the tenants that have an item."""
    return sorted(
        WorkItem.objects.filter(**values).values_list("tenant_slug", flat=True)
    )


@contextmanager
def held(*tenants: Tenant, handler: str = "plain") -> Iterator[psycopg.Connection[Any]]:
    """Somebody's open transaction that has enqueued for these tenants."""
    with psycopg.connect(databases.url()) as session:
        for tenant in tenants:
            session.execute(
                "INSERT INTO workqueue_workitem (tenant_id, tenant_slug, handler, dedup_key, status, not_before,"
                " enqueued_at, trigger, time_limit_s, abandon, retry_attempts, retry_base_s, retry_cap_s, node,"
                " attempts, failures, recoveries, rerun, last_error, held_reason)"
                " VALUES (%s, %s, %s, '', 'pending', now(), now(), 'call', 1, 'requeue', 0, 1, 1, '', 0, 0, 0, false, '', '')",
                [tenant.pk, tenant.slug, handler],
            )
        yield session
        session.rollback()


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


# --- run now


def test_run_now_asks_what_executes_to_run_once_more_and_brings_forward_what_waits(
    woken: list[int],
) -> None:
    for slug in ("acme", "bolt", "cube"):
        factories.tenant(slug)
    tick(tick_id=1)
    WorkItem.objects.filter(tenant_slug="acme").update(status="executing")
    WorkItem.objects.filter(tenant_slug="bolt").update(
        not_before=clock.now() + timedelta(hours=1)
    )
    WorkItem.objects.filter(tenant_slug="cube").update(status="held")
    found = tick(trigger="operator", tick_id=2)
    assert found == Enqueued(reruns=1, still_waiting=2, held=1)
    assert WorkItem.objects.get(tenant_slug="acme").rerun
    assert WorkItem.objects.get(
        tenant_slug="bolt"
    ).not_before <= clock.now() + timedelta(seconds=1)
    assert not WorkItem.objects.filter(tenant_slug="cube", rerun=True).exists()
    assert woken == [1, 1]


@postgresql
def test_run_now_misses_nobody_whose_item_finishes_at_that_moment() -> None:
    factories.tenant("acme")
    tick(tick_id=1)
    WorkItem.objects.update(status="executing")
    with psycopg.connect(databases.url()) as finishing:
        finishing.execute("DELETE FROM workqueue_workitem WHERE tenant_slug = 'acme'")
        found: list[Enqueued] = []
        thread = threading.Thread(
            target=lambda: (
                found.append(tick(trigger="operator", tick_id=2)),
                connections.close_all(),
            )
        )
        thread.start()
        _until_somebody_waits_for_a_lock()
        finishing.commit()
        thread.join(10)
    assert items(tick_id=2) == ["acme"]
    assert WorkItem.objects.get(tenant_slug="platform").rerun
    assert (found[0].enqueued, found[0].reruns) == (1, 1)


def _until_somebody_waits_for_a_lock() -> None:
    with psycopg.connect(databases.url(), autocommit=True) as session:
        wait_until(
            lambda: session.execute(
                "SELECT 1 FROM pg_locks WHERE NOT granted"
            ).fetchone(),
            what="a session that waits for a lock",
        )


# --- races and locks


def test_two_ticks_of_one_slot_at_once_make_one_item_each(
    transactional_db: None,
) -> None:
    for n in range(20):
        factories.tenant(f"t{n}")
    barrier = threading.Barrier(2)
    found: list[Enqueued] = []

    def one(tick_id: int) -> None:
        barrier.wait()
        found.append(tick(tick_id=tick_id))
        connections.close_all()

    threads = [threading.Thread(target=one, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(result.enqueued for result in found) == [0, 21]
    assert WorkItem.objects.count() == 21


@postgresql
def test_one_slow_caller_does_not_stop_a_tick() -> None:
    tenants = [factories.tenant(f"t{n:03}") for n in range(64)]
    with held(tenants[7], tenants[41]):
        began = time.monotonic()
        found = tick()
        assert time.monotonic() - began < around_locks.FIRST_TRY + around_locks.IN_ALL
    assert found.enqueued == 63
    assert found.blocked == 2
    assert sorted(found.blocked_tenants) == sorted([tenants[7].pk, tenants[41].pk])
    assert tick(tick_id=2, try_last=found.blocked_tenants).enqueued == 2


@postgresql
def test_who_was_blocked_is_tried_last_and_costs_little_at_the_next_tick() -> None:
    tenants = [factories.tenant(f"t{n:03}") for n in range(8)]
    with held(tenants[3]):
        found = tick(try_last=[tenants[3].pk])
        began = time.monotonic()
        again = tick(tick_id=2, try_last=found.blocked_tenants)
        assert time.monotonic() - began < around_locks.FIRST_TRY
    assert (found.enqueued, found.blocked_tenants) == (8, [tenants[3].pk])
    assert (again.enqueued, again.blocked, again.still_waiting) == (0, 1, 8)


def test_a_tenant_that_vanishes_during_a_tick_is_no_error() -> None:
    gone = factories.tenant("gone")
    call = Call(row=PLAIN, now=clock.now())
    ids = module._ids(call)
    gone.delete()
    with transaction.atomic():
        origin = module.Origin(trigger="slot", tick_id=1, slot=SLOT)
        assert module._insert(call, origin, only=ids) == 1
    assert items() == ["platform"]


@pytest.fixture
def many() -> Callable[[int], None]:
    def make(count: int) -> None:
        Tenant.objects.bulk_create(
            Tenant(slug=f"many-{n}", name="Many") for n in range(count)
        )

    return make


def test_a_tick_asks_the_same_number_of_questions_for_any_number_of_tenants(
    many: Callable[[int], None], django_assert_max_num_queries: Callable[..., Any]
) -> None:
    many(300)
    with django_assert_max_num_queries(12):
        assert tick().enqueued == 301
