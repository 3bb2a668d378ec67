"""Enqueueing beside others: run now, two ticks at once, and transactions that stay open."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction

from audit import clock
from tests import databases, factories
from tests.waiting import wait_until
from tests.workqueue.ticking import PLAIN, SLOT, held, items, tick
from workqueue import around_locks, eligible, wakeup
from workqueue import enqueue as module
from workqueue.eligible import Call, Census
from workqueue.enqueue import Enqueued
from workqueue.models import Tenant, WorkItem

pytestmark = pytest.mark.usefixtures("ticking")
postgresql = pytest.mark.postgresql


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    monkeypatch.setattr(wakeup, "notify", lambda: calls.append(1))
    return calls


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


# --- a database that is slow


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """100,000 tenants whose items take longer than a tick has; gives who got one."""
    everybody = range(1, 100_001)
    made: set[int] = set()

    def insert(*_: Any, only: Any = None, without: Any = ()) -> int:
        wanted = set(everybody if only is None else only) - set(without)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(%s)", [len(wanted) * 5e-6])
        new = wanted - made
        made.update(new)
        return len(new)

    census = Census(called=len(everybody), paused=0, not_eligible={})
    monkeypatch.setattr(around_locks, "IN_ALL", 0.3)
    monkeypatch.setattr(module, "_insert", insert)
    monkeypatch.setattr(module, "_ids", lambda _: list(everybody))
    monkeypatch.setattr(eligible, "census", lambda _: census)
    return made


@postgresql
def test_a_tick_that_takes_too_long_reaches_some_and_after_some_ticks_everybody(
    slow: set[int],
) -> None:
    found = tick()
    assert found.enqueued == len(slow) > 0
    assert found.enqueued + found.blocked == 100_000
    assert found.blocked_tenants == []  # nobody holds them
    ticks = 1
    while len(slow) < 100_000 and ticks < 60:
        found = tick(try_last=found.blocked_tenants)
        ticks += 1
    assert len(slow) == 100_000


@postgresql
def test_run_now_on_a_slow_database_counts_who_was_not_reached(slow: set[int]) -> None:
    found = tick(trigger="operator")
    assert found.enqueued == len(slow) > 0
    assert found.enqueued + found.blocked == 100_000
    assert found.blocked_tenants == []
