"""The sums of minutes and hours are those of the runs, and stay so."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from audit import sum_up
from audit.models import RunSum, SummedUp
from tests.audit.conftest import recorded

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MS = timedelta(milliseconds=1)


def always() -> bool:
    return True


def ended(at, *, waited=110 * MS, ran=50 * MS, **values):
    started = at - ran
    return recorded(
        finished_at=at,
        started_at=started,
        claimed_at=started,
        enqueued_at=started - waited,
        **values,
    )


def sums(minutes, tenant_id=RunSum.ALL):
    found = RunSum.objects.filter(minutes=minutes, tenant_id=tenant_id)
    return {
        (row.start.strftime("%H:%M"), row.handler): (
            row.runs,
            row.failed,
            row.waits,
            row.rans,
        )
        for row in found
    }


def test_a_minute_is_summed_up_by_handler_with_its_waits_and_run_times():
    ended(NOON + timedelta(seconds=5))
    ended(NOON + timedelta(seconds=59), waited=2000 * MS, outcome="failed")
    ended(NOON + timedelta(seconds=61), handler="tests.other")
    assert sum_up.sum_up(NOON + timedelta(minutes=3), goes_on=always) == 2
    assert sums(1) == {
        ("12:00", "tests.noop"): (2, 1, {"40": 1, "66": 1}, {"33": 2}),
        ("12:01", "tests.other"): (1, 0, {"40": 1}, {"33": 1}),
    }


def test_an_hour_is_summed_up_when_it_is_over_for_each_tenant_and_for_all():
    for minute in (1, 30, 59):
        ended(NOON + timedelta(minutes=minute), tenant_id=7)
    ended(NOON + timedelta(minutes=30), tenant_id=8)
    sum_up.sum_up(NOON + timedelta(minutes=59), goes_on=always)
    assert sums(60) == {}
    sum_up.sum_up(NOON + timedelta(minutes=62), goes_on=always)
    assert sums(60)["12:00", "tests.noop"][0] == 4
    assert sums(60, 7)["12:00", "tests.noop"][0] == 3
    assert sums(60, 8)["12:00", "tests.noop"][0] == 1
    assert sums(1, 7) == {}  # minutes are kept of all tenants together only


def test_the_youngest_seconds_wait_for_finishes_that_are_still_being_committed():
    ended(NOON + timedelta(seconds=59))
    assert sum_up.sum_up(NOON + timedelta(seconds=70), goes_on=always) == 0
    assert sum_up.sum_up(NOON + timedelta(seconds=76), goes_on=always) == 1


def test_what_was_summed_up_is_not_counted_again():
    ended(NOON)
    for minutes in (1.5, 2.5, 61, 62):
        sum_up.sum_up(NOON + timedelta(minutes=minutes), goes_on=always)
    assert sums(1)["12:00", "tests.noop"][0] == 1
    assert sums(60)["12:00", "tests.noop"][0] == 1


def test_who_comes_second_writes_nothing(monkeypatch):
    ended(NOON)
    sum_up.sum_up(NOON + timedelta(seconds=30), goes_on=always)
    monkeypatch.setattr(sum_up, "_reached", lambda now: NOON - timedelta(hours=1))
    assert sum_up.sum_up(NOON + timedelta(minutes=3), goes_on=always) == 0
    assert sums(1) == {}


def test_a_step_that_fails_leaves_the_place_where_it_was(monkeypatch):
    ended(NOON)

    def fail(*_, **__):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(sum_up, "_write", fail)
    with pytest.raises(RuntimeError), transaction.atomic():
        sum_up.sum_up(NOON + timedelta(minutes=3), goes_on=always)
    monkeypatch.undo()
    sum_up.sum_up(NOON + timedelta(minutes=3), goes_on=always)
    assert sums(1)["12:00", "tests.noop"][0] == 1


def test_what_was_left_behind_is_caught_up_in_steps_as_long_as_there_is_time():
    ended(NOON)
    answers = iter([True, True, False])
    done = sum_up.sum_up(NOON + timedelta(hours=5), goes_on=lambda: next(answers))
    assert done == 120
    assert sum_up.reached() == NOON + timedelta(hours=2)


def test_old_hours_have_no_minutes_and_old_sums_go():
    ended(NOON)
    sum_up.sum_up(NOON + timedelta(days=3), goes_on=always)
    assert sums(1) == {}
    assert sums(60)["12:00", "tests.noop"][0] == 1
    sum_up.sum_up(NOON + timedelta(days=33), goes_on=always)
    assert not RunSum.objects.exists()


def test_a_run_that_never_began_has_no_run_time_and_no_wait():
    recorded(finished_at=NOON, claimed_at=None, started_at=None, outcome="cancelled")
    sum_up.sum_up(NOON + timedelta(minutes=2), goes_on=always)
    assert sums(1)["12:00", "tests.noop"] == (1, 0, {}, {})


@pytest.mark.parametrize(
    ("length", "bucket"),
    [(0 * MS, "0"), (-5000 * MS, "0"), (1 * MS, "0"), (timedelta(days=400), "159")],
)
def test_lengths_beyond_both_ends_are_in_the_outermost_buckets(length, bucket):
    ended(NOON, waited=length)
    sum_up.sum_up(NOON + timedelta(minutes=2), goes_on=always)
    assert sums(1)["12:00", "tests.noop"][2] == {bucket: 1}


def test_stretches_of_every_width_hold_the_same_runs():
    for minute in range(0, 360, 7):
        ended(NOON + timedelta(minutes=minute), tenant_id=7)
    sum_up.sum_up(NOON + timedelta(minutes=361), goes_on=always)
    for level in sum_up.LEVELS:
        found = sums(level.minutes).values()
        assert sum(runs for runs, *_ in found) == 52, level
        assert bool(sums(level.minutes, 7)) == level.by_tenant


def test_an_installation_without_runs_begins_with_this_quarter_of_the_day():
    sum_up.sum_up(NOON + timedelta(minutes=5), goes_on=always)
    assert SummedUp.objects.get().until == NOON + timedelta(minutes=4)
