"""Catch up: what to tick in a pass, over restarts, outages, pauses and changes of the clock."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from audit import clock
from scheduler.catch_up import due_now
from scheduler.election import Election
from scheduler.look import look
from scheduler.models import Schedule, Tick
from scheduler.plan import plans
from scheduler.tick import Cause, tick
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue import live, pauses
from workqueue.models import Pause, WorkItem
from workqueue.registry import Handler, Misfire

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
type Timetable = Callable[..., tuple[Handler, ...]]
type Pass = Callable[..., list[Cause]]


@pytest.fixture
def passes(election: Election) -> Pass:
    """One pass of a master at a moment: what it ticked. Every item is done at once."""

    def one(moment: datetime, *, done: bool = True) -> list[Cause]:
        with clock.at(moment):
            live.forget()
            if election.term is None:
                assert election.take()
            election.renew()
            seen = look()
            ticked = []
            for plan, cause in due_now(plans(seen, election=election), seen=seen):
                if tick(plan.row, cause, election=election, live=seen.live) is not None:
                    ticked.append(cause)
        if done:
            WorkItem.objects.all().delete()
        return ticked

    return one


def test_nothing_is_due_at_first_sight(timetable: Timetable, passes: Pass) -> None:
    timetable(row("plain"))
    assert passes(NOON) == []
    assert [cause.slot for cause in passes(NOON + timedelta(seconds=10))] == [
        NOON + timedelta(seconds=10)
    ]


def test_a_scheduler_restarted_every_twenty_seconds_misses_no_minute(
    timetable: Timetable, passes: Pass, election: Election
) -> None:
    timetable(row("plain", cadence="1m"))
    passes(NOON)
    for second in range(20, 601, 20):
        election.resign(text="restarted")
        passes(NOON + timedelta(seconds=second))
    slots = list(Tick.objects.order_by("slot").values_list("slot", flat=True))
    assert slots == [NOON + timedelta(minutes=n) for n in range(1, 11)]


def test_a_daily_row_runs_fourteen_times_in_fourteen_days_of_six_restarts(
    timetable: Timetable, passes: Pass, election: Election
) -> None:
    timetable(row("plain", cadence="daily 23:00"))
    passes(NOON)
    for n in range(1, 14 * 6 + 1):
        election.resign(text="restarted")
        passes(NOON + timedelta(hours=4) * n)
    assert Tick.objects.count() == 14
    assert Tick.objects.filter(missed__gt=0).count() == 0


def test_two_weeks_down_make_up_the_newest_slot_once_and_say_how_many_went_by(
    timetable: Timetable, passes: Pass
) -> None:
    timetable(
        row("plain", cadence="10s"),
        row("probed", cadence="1h"),
        row("started", cadence="daily 23:00"),
    )
    passes(NOON)
    back = NOON + timedelta(days=14, seconds=5)
    assert len(passes(back)) == 3
    missed = dict(Tick.objects.values_list("handler", "missed"))
    assert missed == {"plain": 14 * 8640 - 1, "probed": 14 * 24 - 1, "started": 13}
    assert passes(back + timedelta(seconds=1)) == []
    assert len(passes(back + timedelta(seconds=6))) == 1  # then the normal cadence


def test_a_daily_row_runs_once_a_local_day_when_the_clocks_go_back_whoever_restarts(
    timetable: Timetable, passes: Pass, election: Election, settings: Any
) -> None:
    settings.SERVER_TIME_ZONE = "Europe/Vienna"
    zone = ZoneInfo("Europe/Vienna")
    timetable(
        row("plain", cadence="daily 23:00"),
        row("started", cadence="daily 12:00"),
        row("probed", cadence="30 2 * * *"),
    )
    begin = datetime(2026, 10, 24, tzinfo=zone).astimezone(UTC)
    looks = {begin + timedelta(minutes=10) * n for n in range(3 * 24 * 6 + 7)}
    restarts = {
        datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=zone).astimezone(UTC)
        for fold in (0, 1)
    }
    for moment in sorted(looks):
        if moment in restarts:
            election.resign(text="restarted")
        passes(moment)
    assert restarts < looks
    found: dict[str, list[str]] = {}
    for key, slot in Tick.objects.order_by("slot").values_list("handler", "slot"):
        found.setdefault(key, []).append(f"{slot:%d %H:%M}")
    assert found == {
        "plain": ["24 21:00", "25 22:00", "26 22:00"],
        "started": ["24 10:00", "25 11:00", "26 11:00"],
        "probed": ["24 00:30", "25 00:30", "26 01:30"],
    }


def test_a_paused_row_is_left_alone_and_its_slots_are_counted_afterwards(
    timetable: Timetable, passes: Pass
) -> None:
    timetable(row("plain", cadence="10s"), row("started", cadence="10s"))
    passes(NOON)
    with clock.at(NOON + timedelta(seconds=5)):
        pause = pauses.pause(
            scope=Pause.Scope.HANDLER,
            handler="plain",
            reason="upgrade",
            who="ann",
            origin="command",
        )
    for n in range(1, 6):
        assert len(passes(NOON + timedelta(seconds=10 * n))) == 1
    assert not Tick.objects.filter(handler="plain").exists()
    with clock.at(NOON + timedelta(seconds=55)):
        pauses.resume(pause, who="ann", origin="command", why="done")
    assert [c.slot for c in passes(NOON + timedelta(seconds=56))] == []
    passes(NOON + timedelta(seconds=60))
    tick_row = Tick.objects.get(handler="plain")
    assert (tick_row.missed, tick_row.paused_slots) == (0, 5)


def test_a_pause_that_ended_by_itself_while_no_master_lived_is_known_afterwards(
    timetable: Timetable, passes: Pass
) -> None:
    timetable(row("plain", cadence="1h"))
    passes(NOON)
    with clock.at(NOON + timedelta(minutes=30)):
        until = NOON + timedelta(hours=3, minutes=30)
        pauses.pause(
            scope=Pause.Scope.EVERYTHING,
            reason="upgrade",
            who="ann",
            origin="command",
            until=until,
        )
    passes(NOON + timedelta(hours=5, minutes=10))
    tick_row = Tick.objects.get()
    assert (tick_row.slot, tick_row.missed, tick_row.paused_slots) == (
        NOON + timedelta(hours=5),
        1,
        3,
    )


def test_run_now_is_ticked_at_the_next_pass_before_the_slots(
    timetable: Timetable, passes: Pass
) -> None:
    timetable(row("plain", cadence="10s"))
    passes(NOON)
    asked = NOON + timedelta(seconds=3)
    Schedule.objects.update(
        run_requested_at=asked, run_requested_by="ann", run_requested_why="look"
    )
    ticked = passes(NOON + timedelta(seconds=10))
    assert [(c.trigger, c.slot, c.who) for c in ticked] == [
        ("operator", asked, "ann"),
        ("slot", NOON + timedelta(seconds=10), ""),
    ]
    assert passes(NOON + timedelta(seconds=11)) == []


def test_all_catches_up_one_after_the_other_waiting_for_the_items_before(
    timetable: Timetable, passes: Pass
) -> None:
    factories.tenant("acme")
    timetable(row("plain", cadence="1h", misfire=Misfire(rule="all", at_most=3)))
    passes(NOON)
    back = NOON + timedelta(hours=10, minutes=5)
    assert [c.slot for c in passes(back, done=False)] == [NOON + timedelta(hours=8)]
    assert passes(back + timedelta(seconds=2), done=False) == []
    WorkItem.objects.filter(tenant_slug="acme").update(status="held")
    WorkItem.objects.exclude(status="held").delete()
    assert [c.slot for c in passes(back + timedelta(seconds=4))] == [
        NOON + timedelta(hours=9)
    ]
    assert [c.slot for c in passes(back + timedelta(seconds=6))] == [
        NOON + timedelta(hours=10)
    ]
    assert list(Tick.objects.order_by("slot").values_list("missed", flat=True)) == [
        7,
        0,
        0,
    ]


def test_a_slow_tenant_holds_up_the_catching_up_for_one_interval_only(
    timetable: Timetable, passes: Pass
) -> None:
    timetable(row("plain", cadence="1h", misfire=Misfire(rule="all", at_most=3)))
    passes(NOON)
    back = NOON + timedelta(hours=3, minutes=5)
    passes(back, done=False)
    assert passes(back + timedelta(minutes=59), done=False) == []
    assert len(passes(back + timedelta(minutes=61), done=False)) == 1


def test_a_pass_with_nothing_due_asks_nothing(
    timetable: Timetable,
    passes: Pass,
    election: Election,
    django_assert_num_queries: Callable[..., Any],
) -> None:
    timetable(row("plain"), row("started", cadence="daily 23:00"))
    passes(NOON)
    with clock.at(NOON + timedelta(seconds=1)):
        seen = look()
        found = plans(seen, election=election)
        with django_assert_num_queries(0):
            assert list(due_now(found, seen=seen)) == []
