"""Plans: what each row waits for, and what a changed row forgets."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from audit import clock
from scheduler.election import Election
from scheduler.look import look
from scheduler.models import Schedule
from scheduler.plan import Plan, plans, seconds_to_next
from tests.scheduler.timetable_for_tests import row
from workqueue.registry import Handler

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
type Timetable = Callable[..., tuple[Handler, ...]]


@pytest.fixture
def planned(master: Election) -> Callable[..., list[Plan]]:
    """The plans of a pass at this moment."""

    def at(moment: datetime) -> list[Plan]:
        with clock.at(moment):
            master.renew()
            return plans(look(), election=master)

    return at


def test_a_row_at_first_sight_begins_now(timetable: Timetable, planned: Any) -> None:
    timetable(row("plain", cadence="daily 11:00"))
    [plan] = planned(NOON)
    assert plan.next_slot == NOON + timedelta(hours=23)
    schedule = Schedule.objects.get()
    assert (schedule.since, schedule.effective, schedule.last_slot) == (
        NOON,
        "daily 11:00 UTC",
        None,
    )


def test_a_row_goes_on_from_its_last_slot_after_a_restart(
    timetable: Timetable, planned: Any
) -> None:
    timetable(row("plain", cadence="1h"))
    planned(NOON)
    Schedule.objects.update(last_slot=NOON + timedelta(hours=2))
    [plan] = planned(NOON + timedelta(hours=5))
    assert plan.next_slot == NOON + timedelta(hours=3)


@pytest.mark.parametrize("change", ["release", "operator", "zone"])
def test_a_changed_cadence_or_zone_begins_now(
    timetable: Timetable, planned: Any, settings: Any, change: str
) -> None:
    timetable(row("plain", cadence="daily 11:00"))
    planned(NOON)
    later = NOON + timedelta(days=3, hours=2)
    if change == "release":
        timetable(row("plain", cadence="1h"))
    elif change == "operator":
        Schedule.objects.update(cadence="1h")
    else:
        settings.SERVER_TIME_ZONE = "Europe/Vienna"
    [plan] = planned(later)
    assert plan.since == later
    assert plan.next_slot > later
    assert Schedule.objects.get().since == later
    [again] = planned(later + timedelta(minutes=1))
    assert again.since == later


def test_nothing_is_written_where_nothing_changed(
    timetable: Timetable,
    planned: Any,
    master: Election,
    django_assert_num_queries: Callable[..., Any],
) -> None:
    timetable(
        row("plain"), row("started", cadence=None), row("probed", cadence="whenever")
    )
    planned(NOON)
    seen = look()
    with django_assert_num_queries(0):
        plans(seen, election=master)


def test_a_row_on_demand_has_no_slot_and_no_problem(
    timetable: Timetable, planned: Any
) -> None:
    timetable(row("plain", cadence=None))
    [plan] = planned(NOON)
    assert (plan.cadence, plan.next_slot, plan.problem) == (None, None, "")


@pytest.mark.parametrize(
    "bad",
    ["0 0 30 2 *", "0 0 31 4 *", "61 * * * *", "* * * * * *", "x" * 100, "nonsense"],
)
def test_a_bad_cadence_that_got_in_by_sql_flags_its_own_row_and_no_other(
    timetable: Timetable, planned: Any, caplog: pytest.LogCaptureFixture, bad: str
) -> None:
    timetable(row("plain"), row("started", cadence="5m"))
    planned(NOON)
    Schedule.objects.filter(key="plain").update(cadence=bad)
    caplog.set_level(logging.ERROR, "scheduler.plan")
    flagged, other = planned(NOON + timedelta(seconds=1))
    assert flagged.cadence is None
    assert flagged.next_slot is None
    assert Schedule.objects.get(key="plain").problem == flagged.problem != ""
    assert other.next_slot == NOON + timedelta(minutes=5)
    for n in range(5):
        planned(NOON + timedelta(seconds=2 + n))
    errors = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert len(errors) == 1  # said once, not at every pass
    Schedule.objects.filter(key="plain").update(cadence="")
    mended, _ = planned(NOON + timedelta(seconds=10))
    assert mended.problem == ""
    assert Schedule.objects.get(key="plain").problem == ""


def test_a_hundred_bad_rows_cost_no_pass_its_time(
    timetable: Timetable, planned: Any
) -> None:
    timetable(
        *(row(f"plain{n}", cadence=f"0 0 */31 {n % 12 + 1} MON#5") for n in range(100))
    )
    planned(NOON)
    began = time.perf_counter()
    for n in range(3):
        planned(NOON + timedelta(seconds=n))
    assert time.perf_counter() - began < 3


def test_the_ticker_sleeps_to_the_next_slot_and_no_longer_than_to_its_next_look(
    timetable: Timetable, planned: Any
) -> None:
    timetable(row("plain", cadence="10s"), row("started", cadence="daily 23:00"))
    found = planned(NOON)
    assert seconds_to_next(found, now=NOON, at_most=2.0) == 2.0
    assert seconds_to_next(
        found, now=NOON + timedelta(seconds=9.4), at_most=2.0
    ) == pytest.approx(0.6)
    assert seconds_to_next([], now=NOON, at_most=2.0) == 2.0
