"""Slots: what is due, what was missed, what fell into a pause."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cadence import parse
from scheduler.slots import GRACE, Due, Span, due, merged
from workqueue.registry import Misfire

pytestmark = pytest.mark.once

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
TEN_SECONDS = parse("10s", "UTC")
HOURLY = parse("1h", "UTC")
DAILY = parse("daily 23:00", "UTC")
LATEST = Misfire()
SKIP = Misfire(rule="skip")


def after(**delta: float) -> datetime:
    return NOON + timedelta(**delta)


def test_a_slot_is_due_from_its_own_instant_on() -> None:
    assert (
        due(TEN_SECONDS, misfire=LATEST, since=NOON, now=after(seconds=9.999)) is None
    )
    found = due(TEN_SECONDS, misfire=LATEST, since=NOON, now=after(seconds=10))
    assert found == Due(slot=after(seconds=10))


def test_latest_ticks_the_newest_missed_slot_once_and_counts_the_others() -> None:
    found = due(TEN_SECONDS, misfire=LATEST, since=NOON, now=after(days=14))
    assert found == Due(slot=after(days=14), missed=14 * 8640 - 1)


def test_a_daily_slot_missed_by_ten_hours_is_made_up_once() -> None:
    now = after(hours=21)  # 09:00; the slot was at 23:00
    found = due(DAILY, misfire=LATEST, since=NOON, now=now)
    assert found == Due(slot=after(hours=11))
    assert due(DAILY, misfire=LATEST, since=after(hours=11), now=now) is None


def test_skip_leaves_out_a_missed_slot_and_counts_it_on_the_next() -> None:
    assert due(DAILY, misfire=SKIP, since=NOON, now=after(hours=21)) is None
    found = due(DAILY, misfire=SKIP, since=NOON, now=after(hours=35))
    assert found == Due(slot=after(hours=35), missed=1)


def test_skip_takes_a_slot_that_is_only_as_late_as_a_take_over() -> None:
    slot = after(hours=11)
    assert due(DAILY, misfire=SKIP, since=NOON, now=slot + GRACE) == Due(slot=slot)
    assert (
        due(DAILY, misfire=SKIP, since=NOON, now=slot + GRACE + timedelta(seconds=1))
        is None
    )


def test_all_ticks_the_newest_few_one_after_the_other_oldest_first() -> None:
    rule = Misfire(rule="all", at_most=3)
    now = after(hours=10)
    since, ticked = NOON, []
    while found := due(HOURLY, misfire=rule, since=since, now=now):
        ticked.append(found)
        since = found.slot
    assert [one.slot for one in ticked] == [
        after(hours=8),
        after(hours=9),
        after(hours=10),
    ]
    assert [one.missed for one in ticked] == [7, 0, 0]
    assert [one.catching_up for one in ticked] == [True, True, False]


def test_slots_within_a_pause_are_paused_and_not_missed() -> None:
    pause = Span(start=after(hours=1), end=after(hours=3, minutes=30))
    found = due(HOURLY, misfire=LATEST, since=NOON, now=after(hours=4), pauses=[pause])
    assert found == Due(slot=after(hours=4), missed=0, paused=3)


def test_a_slot_within_a_pause_is_not_made_up_when_the_pause_ends() -> None:
    pause = Span(start=after(hours=10, minutes=30), end=after(hours=11, minutes=30))
    assert (
        due(DAILY, misfire=LATEST, since=NOON, now=after(hours=12), pauses=[pause])
        is None
    )
    found = due(DAILY, misfire=LATEST, since=NOON, now=after(hours=35), pauses=[pause])
    assert found == Due(slot=after(hours=35), missed=0, paused=1)


def test_a_slot_at_the_very_end_of_a_pause_is_ticked() -> None:
    pause = Span(start=after(minutes=30), end=after(hours=1))
    found = due(HOURLY, misfire=LATEST, since=NOON, now=after(hours=1), pauses=[pause])
    assert found == Due(slot=after(hours=1))


def test_a_slot_at_the_very_beginning_of_a_pause_is_paused() -> None:
    pause = Span(start=after(hours=1), end=after(hours=1, minutes=30))
    assert (
        due(
            HOURLY,
            misfire=LATEST,
            since=NOON,
            now=after(hours=1, minutes=45),
            pauses=[pause],
        )
        is None
    )


def test_the_end_of_a_pause_is_a_new_beginning_for_what_was_missed_before_it() -> None:
    pause = Span(start=after(hours=2, minutes=30), end=after(hours=3, minutes=30))
    assert (
        due(
            HOURLY,
            misfire=LATEST,
            since=NOON,
            now=after(hours=3, minutes=45),
            pauses=[pause],
        )
        is None
    )
    found = due(HOURLY, misfire=LATEST, since=NOON, now=after(hours=4), pauses=[pause])
    # 13:00 and 14:00 went by unticked, 15:00 was paused: none of them is lost silently.
    assert found == Due(slot=after(hours=4), missed=2, paused=1)


def test_two_weeks_of_a_pause_cost_no_walk() -> None:
    row = parse("2s", "UTC")
    pause = Span(start=after(seconds=1), end=after(days=14))
    found = due(
        row, misfire=LATEST, since=NOON, now=after(days=14, seconds=1), pauses=[pause]
    )
    assert found == Due(slot=after(days=14), missed=0, paused=604_799)


def test_pauses_that_overlap_are_counted_once() -> None:
    spans = [
        Span(start=after(hours=1), end=after(hours=3)),
        Span(start=after(hours=2), end=after(hours=4)),
        Span(start=after(hours=6), end=after(hours=7)),
    ]
    assert merged(spans) == [Span(start=after(hours=1), end=after(hours=4)), spans[2]]


minutes = st.integers(0, 600)


@given(
    spans=st.lists(st.tuples(minutes, st.integers(1, 120)), max_size=4),
    looks=st.lists(minutes, min_size=1, max_size=30, unique=True),
)
def test_every_slot_is_ticked_or_counted_exactly_once(
    spans: list[tuple[int, int]], looks: list[int]
) -> None:
    """Whatever the pauses and whenever the master looks."""
    row = parse("7m", "UTC")
    pauses = [
        Span(start=after(minutes=a), end=after(minutes=a + length))
        for a, length in spans
    ]
    since, accounted = NOON, 0
    for look in sorted(looks):
        now = after(minutes=look)
        if any(span.start <= now < span.end for span in pauses):
            continue  # a paused row is not asked
        over = [span for span in pauses if span.end <= now]
        if found := due(row, misfire=LATEST, since=since, now=now, pauses=over):
            assert not any(span.start <= found.slot < span.end for span in over)
            assert since < found.slot <= now
            accounted += 1 + found.missed + found.paused
            since = found.slot
    assert accounted == row.count(since=NOON, now=since)
