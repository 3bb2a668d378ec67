"""A tick: one decision, one transaction, everything counted on its row."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from audit import clock
from scheduler.election import Election
from scheduler.exceptions import NotMaster
from scheduler.models import MasterLease, Schedule, Tick
from scheduler.tick import Cause, tick
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue import node
from workqueue.enqueue import Enqueued
from workqueue.live import Live, PauseRow
from workqueue.models import WorkItem
from workqueue.registry import Handler

SLOT = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)
EVERY = Live()
DUE = Live(policy=replace(EVERY.policy, enqueue_mode="due"))


def slot(seconds: float = 0, **values: Any) -> Cause:
    return Cause(trigger="slot", slot=SLOT + timedelta(seconds=seconds), **values)


@pytest.fixture
def schedule(plain: Handler, transactional_db: None) -> Schedule:
    return Schedule.objects.create(key="plain", since=SLOT - timedelta(hours=1))


@pytest.fixture
def ticked(
    master: Election, plain: Handler, schedule: Schedule
) -> Callable[..., Enqueued | None]:
    """Tick the row "plain"."""

    def one(
        cause: Cause, handler: Handler = plain, live: Live = EVERY
    ) -> Enqueued | None:
        with clock.at(cause.slot + timedelta(milliseconds=250)):
            master.renew()
            return tick(handler, cause, election=master, live=live)

    return one


def test_a_tick_is_recorded_with_its_term_its_lateness_and_its_counts(
    ticked: Callable[..., Enqueued],
) -> None:
    factories.tenant("acme")
    factories.tenant("asleep", is_active=False)
    ticked(slot(missed=3, paused_slots=2))
    row = Tick.objects.get()
    assert (row.handler, row.trigger, row.slot, row.term) == ("plain", "slot", SLOT, 1)
    assert row.lateness_ms == 250
    assert row.at == SLOT + timedelta(milliseconds=250)
    assert (row.enqueued, row.missed, row.paused_slots) == (2, 3, 2)
    assert row.not_eligible == {"inactive": 1}
    assert (
        WorkItem.objects.filter(tick_id=row.pk, slot=SLOT, trigger="slot").count() == 2
    )
    assert Schedule.objects.get().last_slot == SLOT


def test_a_slot_is_ticked_once(ticked: Callable[..., Enqueued | None]) -> None:
    assert ticked(slot()) is not None
    WorkItem.objects.all().delete()
    assert ticked(slot()) is None
    assert not WorkItem.objects.exists()
    assert Tick.objects.count() == 1


def test_a_slot_before_the_last_one_is_never_ticked_again(
    ticked: Callable[..., Enqueued | None],
) -> None:
    ticked(slot(20))
    assert ticked(slot(10)) is None
    assert Schedule.objects.get().last_slot == SLOT + timedelta(seconds=20)


def test_a_slot_that_was_set_back_by_sql_is_refused_by_its_tick(
    ticked: Callable[..., Enqueued | None], caplog: pytest.LogCaptureFixture
) -> None:
    ticked(slot())
    WorkItem.objects.all().delete()
    Schedule.objects.update(last_slot=None)
    caplog.set_level(logging.WARNING, "scheduler.tick")
    assert ticked(slot()) is None
    assert Tick.objects.count() == 1
    assert not WorkItem.objects.exists()
    assert (
        Schedule.objects.get().last_slot == SLOT
    )  # and the next slot goes on from here
    assert "ticked before" in caplog.text


def test_two_who_both_believe_they_are_master_tick_a_slot_once(
    master: Election, plain: Handler, schedule: Schedule
) -> None:
    """Not only by election: the database refuses the second, as a normal result."""
    twin = Election(me=master._me)
    twin._begin(1, sent=clock.steady(), known=True)
    barrier = threading.Barrier(2)
    results: list[Enqueued | None] = []

    def one(election: Election) -> None:
        barrier.wait()
        results.append(tick(plain, slot(), election=election, live=EVERY))
        connections.close_all()

    threads = [threading.Thread(target=one, args=(each,)) for each in (master, twin)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(result is None for result in results) == [False, True]
    assert Tick.objects.count() == 1
    assert WorkItem.objects.count() == 1


def test_a_deposed_master_ticks_nothing(
    master: Election, plain: Handler, schedule: Schedule
) -> None:
    MasterLease.objects.update(expires_at=clock.earlier(timedelta(seconds=1)))
    assert Election(me=node.register(kind="server", report={})).take()
    with pytest.raises(NotMaster):
        tick(plain, slot(), election=master, live=EVERY)
    assert not Tick.objects.exists()
    assert not WorkItem.objects.exists()
    assert Schedule.objects.get().last_slot is None


def test_a_tick_that_fails_leaves_its_slot_to_be_ticked(
    ticked: Callable[..., Enqueued | None], timetable: Callable[..., Any]
) -> None:
    [broken] = timetable(row("broken", cadence="10s"))
    Schedule.objects.create(key="broken", since=SLOT)
    with pytest.raises(RuntimeError):
        ticked(slot(), broken, DUE)
    assert not Tick.objects.exists()
    assert Schedule.objects.get(key="broken").last_slot is None


def test_paused_tenants_are_counted_on_the_tick(
    ticked: Callable[..., Enqueued],
) -> None:
    acme = factories.tenant("acme")
    pause = PauseRow(
        id=1,
        scope="tenant",
        handler="",
        tenant_id=acme.pk,
        tenant="acme",
        reason="r",
        who="w",
        since=SLOT,
        until=None,
    )
    ticked(slot(), live=Live(pauses=(pause,)))
    row = Tick.objects.get()
    assert (row.enqueued, row.paused) == (1, 1)


def test_who_was_blocked_at_the_last_tick_is_tried_last(
    ticked: Callable[..., Enqueued], monkeypatch: pytest.MonkeyPatch
) -> None:
    from workqueue import enqueue

    asked: list[Any] = []
    original = enqueue.enqueue_tick
    monkeypatch.setattr(
        enqueue,
        "enqueue_tick",
        lambda *a, **k: asked.append(k["try_last"]) or original(*a, **k),
    )
    ticked(slot())
    Tick.objects.update(blocked=2, blocked_tenants=[7, 9])
    ticked(slot(10))
    ticked(slot(20))
    assert asked == [[], [7, 9], []]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            Enqueued(blocked=2, blocked_tenants=[7, 9]),
            ["somebody's transaction holds them", "blocked=2 tenants=[7, 9]"],
        ),
        (Enqueued(blocked=70_000), ["the database was too slow", "not_reached=70000"]),
    ],
    ids=["held", "not reached"],
)
def test_the_log_says_why_tenants_were_left_out(
    ticked: Callable[..., Enqueued],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    found: Enqueued,
    said: list[str],
) -> None:
    monkeypatch.setattr("workqueue.enqueue.enqueue_tick", lambda *_, **__: found)
    caplog.set_level(logging.WARNING, "scheduler.tick")
    ticked(slot())
    [record] = caplog.records
    assert all(words in record.getMessage() for words in said)


# --- rows under ten seconds


@pytest.fixture
def fast(timetable: Callable[..., tuple[Handler, ...]], schedule: Schedule) -> Handler:
    Schedule.objects.create(key="probed", since=SLOT - timedelta(hours=1))
    return timetable(row("probed", cadence="2s"))[0]


def test_idle_ticks_of_a_fast_row_are_merged_to_one_a_minute(
    ticked: Callable[..., Enqueued], fast: Handler
) -> None:
    for seconds in range(0, 120, 2):
        ticked(slot(seconds, fast=True), fast)
    rows = list(Tick.objects.order_by("slot").values_list("slot", "merged", "enqueued"))
    assert rows == [(SLOT, 30, 0), (SLOT + timedelta(minutes=1), 30, 0)]
    assert Schedule.objects.get(key="probed").last_slot == SLOT + timedelta(seconds=118)


def test_a_fast_row_calls_only_tenants_with_work_in_every_mode(
    ticked: Callable[..., Enqueued], fast: Handler
) -> None:
    factories.tenant("acme", name="Busy acme")
    factories.tenant("bolt")
    ticked(slot(fast=True), fast)
    assert list(WorkItem.objects.values_list("tenant_slug", flat=True)) == ["acme"]


def test_a_busy_tick_between_idle_ones_has_a_row_of_its_own(
    ticked: Callable[..., Enqueued], fast: Handler
) -> None:
    ticked(slot(0, fast=True), fast)
    acme = factories.tenant("acme", name="Busy acme")
    ticked(slot(2, fast=True), fast)
    WorkItem.objects.all().delete()
    acme.name = "Idle acme"
    acme.save()
    ticked(slot(4, fast=True), fast)
    ticked(slot(6, fast=True), fast)
    rows = list(Tick.objects.order_by("slot").values_list("merged", "enqueued"))
    assert rows == [(3, 0), (1, 1)]


def test_an_idle_tick_that_stands_for_missed_slots_keeps_its_own_row(
    ticked: Callable[..., Enqueued], fast: Handler
) -> None:
    ticked(slot(0, fast=True), fast)
    ticked(slot(10, fast=True, missed=4), fast)
    assert list(Tick.objects.order_by("slot").values_list("missed", flat=True)) == [
        0,
        4,
    ]


# --- run now and start


def test_an_operators_tick_calls_everybody_and_clears_the_request(
    ticked: Callable[..., Enqueued | None], timetable: Callable[..., Any]
) -> None:
    factories.tenant("acme")
    [probed] = timetable(row("probed"))
    asked = {
        "run_requested_at": SLOT,
        "run_requested_by": "ann",
        "run_requested_why": "now",
    }
    Schedule.objects.create(key="probed", since=SLOT, **asked)
    cause = Cause(trigger="operator", slot=SLOT, who="ann", why="now")
    found = ticked(cause, probed, DUE)
    assert found is not None
    assert found.enqueued == 2
    tick_row = Tick.objects.get()
    assert (tick_row.trigger, tick_row.who, tick_row.why) == ("operator", "ann", "now")
    schedule = Schedule.objects.get(key="probed")
    assert (schedule.run_requested_at, schedule.run_requested_by) == (None, "")
    assert schedule.last_slot is None  # its slots stay as they are
    assert ticked(cause, probed, DUE) is None


def test_a_start_trigger_is_ticked_once_per_term(
    ticked: Callable[..., Enqueued | None],
) -> None:
    cause = Cause(trigger="start", slot=SLOT)
    assert ticked(cause) is not None
    assert ticked(cause) is None
    assert ticked(replace(cause, slot=SLOT + timedelta(hours=1))) is not None
    assert Tick.objects.filter(trigger="start").count() == 2


@pytest.mark.parametrize("trigger", ["slot", "operator"])
def test_a_problem_is_over_with_the_next_tick_that_works(
    ticked: Callable[..., Enqueued], trigger: str
) -> None:
    Schedule.objects.update(problem="its last tick failed", run_requested_at=SLOT)
    ticked(Cause(trigger=trigger, slot=SLOT))
    assert Schedule.objects.get().problem == ""
