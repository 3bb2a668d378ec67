"""Cadences by the wall clock, where it goes back, jumps ahead, or leaves out a day."""

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cadence import parse
from tests.scheduler.instants import VIENNA, utc, walk

# Gaps and repeats of an hour and of half an hour, at midnight and in the night, north
# and south; no change at all; and a whole day that one zone left out.
ZONES = [
    "UTC",
    VIENNA,
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "America/Havana",
]
# Days around every change of 2026 in those zones, and some ordinary ones.
DAYS = [
    date(2026, 3, 8),
    date(2026, 3, 28),
    date(2026, 3, 29),
    date(2026, 4, 4),
    date(2026, 4, 5),
    date(2026, 4, 23),
    date(2026, 4, 24),
    date(2026, 9, 5),
    date(2026, 9, 6),
    date(2026, 10, 4),
    date(2026, 10, 24),
    date(2026, 10, 25),
    date(2026, 10, 29),
    date(2026, 10, 30),
    date(2026, 11, 1),
    date(2026, 7, 15),
]


# --- the wall clock


def test_a_daily_row_runs_once_on_the_day_the_clocks_go_back() -> None:
    row = parse("daily 23:00", VIENNA)
    assert walk(row, start=utc(2026, 10, 24), end=utc(2026, 10, 27)) == [
        utc(2026, 10, 24, 21),
        utc(2026, 10, 25, 22),
        utc(2026, 10, 26, 22),
    ]


def test_a_noon_row_stays_at_noon_after_the_clocks_went_back() -> None:
    row = parse("daily 12:00", VIENNA)
    assert walk(row, start=utc(2026, 10, 24), end=utc(2026, 10, 27)) == [
        utc(2026, 10, 24, 10),
        utc(2026, 10, 25, 11),
        utc(2026, 10, 26, 11),
    ]


def test_a_local_time_that_occurs_twice_is_one_slot_the_first() -> None:
    row = parse("30 2 * * *", VIENNA)
    assert walk(row, start=utc(2026, 10, 24, 12), end=utc(2026, 10, 25, 12)) == [
        utc(2026, 10, 25, 0, 30)
    ]


@pytest.mark.parametrize("minute", [0, 15, 29, 30, 31, 45, 59])
def test_a_restart_within_the_repeated_hour_does_not_bring_its_slot_back(
    minute: int,
) -> None:
    row = parse("30 2 * * *", VIENNA)
    second_pass = utc(2026, 10, 25, 1, minute)
    assert row.next_after(second_pass) == utc(2026, 10, 26, 1, 30)
    assert list(row.newest(since=utc(2026, 10, 25), now=second_pass)) == [
        utc(2026, 10, 25, 0, 30)
    ]


def test_a_local_time_that_does_not_exist_runs_at_the_first_instant_after_the_gap() -> (
    None
):
    row = parse("30 2 * * *", VIENNA)
    assert walk(row, start=utc(2026, 3, 28, 12), end=utc(2026, 3, 29, 12)) == [
        utc(2026, 3, 29, 1)
    ]


def test_two_local_times_in_one_gap_are_one_slot() -> None:
    row = parse("0,30 2 * * *", VIENNA)
    assert walk(row, start=utc(2026, 3, 28, 12), end=utc(2026, 3, 29, 12)) == [
        utc(2026, 3, 29, 1)
    ]
    assert row.count(since=utc(2026, 3, 28, 12), now=utc(2026, 3, 29, 12)) == 1


def test_minutes_of_one_hour_are_not_lost_with_the_hour() -> None:
    row = parse("*/20 2 * * *", VIENNA)
    assert walk(row, start=utc(2026, 3, 28, 12), end=utc(2026, 3, 29, 12)) == [
        utc(2026, 3, 29, 1)
    ]


def test_every_half_hour_follows_elapsed_time_when_the_clocks_change() -> None:
    row = parse("*/30 * * * *", VIENNA)
    autumn = walk(row, start=utc(2026, 10, 24, 23, 45), end=utc(2026, 10, 25, 3))
    spring = walk(row, start=utc(2026, 3, 29, 0, 15), end=utc(2026, 3, 29, 3))
    for slots in (autumn, spring):
        assert {later - earlier for earlier, later in pairwise(slots)} == {
            timedelta(minutes=30)
        }


def test_a_gap_at_midnight_moves_a_midnight_row_to_its_end() -> None:
    # Cairo, 24 April 2026: 00:00 to 01:00 does not exist.
    row = parse("daily 00:00", "Africa/Cairo")
    slot = row.next_after(utc(2026, 4, 23, 12))
    assert slot == utc(2026, 4, 23, 22)
    assert slot.astimezone(ZoneInfo("Africa/Cairo")).hour == 1


def test_the_31st_and_the_29th_of_february_come_when_they_exist() -> None:
    assert parse("monthly 31 00:00", "UTC").next_after(utc(2026, 2, 1)) == utc(
        2026, 3, 31
    )
    assert parse("0 0 29 2 *", "UTC").next_after(utc(2096, 3, 1)) == utc(2104, 2, 29)
    assert parse("monthly last 00:00", "UTC").next_after(utc(2026, 2, 1)) == utc(
        2026, 2, 28
    )


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, set[int], set[int]]:
    """Minutes and hours, as cron writes them and as sets."""
    minutes = draw(
        st.sets(st.sampled_from([0, 5, 29, 30, 45, 59]), min_size=1, max_size=3)
    )
    hours = draw(st.sets(st.integers(0, 23), min_size=1, max_size=5))
    text = f"{','.join(map(str, sorted(minutes)))} {','.join(map(str, sorted(hours)))} * * *"
    return text, minutes, hours


def by_the_calendar(
    *, minutes: set[int], hours: set[int], zone: str, day: date
) -> list[datetime]:
    """The slots of three days, from every local minute there is: no cron involved."""
    info = ZoneInfo(zone)
    slots = set()
    for offset in (-1, 0, 1):
        for hour in hours:
            for minute in minutes:
                local = datetime.combine(
                    day + timedelta(days=offset), datetime.min.time()
                ).replace(hour=hour, minute=minute)
                instant = local.replace(tzinfo=info).astimezone(UTC)
                if instant.astimezone(info).replace(tzinfo=None) != local:
                    # In a gap: the first instant whose local time is later than it.
                    instant = instant - timedelta(hours=2)
                    while instant.astimezone(info).replace(tzinfo=None) < local:
                        instant += timedelta(minutes=1)
                slots.add(instant)
    return sorted(slots)


@given(
    expression=expressions(),
    zone=st.sampled_from(ZONES),
    day=st.sampled_from(DAYS),
    at=st.integers(0, 86_400),
)
def test_no_local_time_is_doubled_or_missed_over_zones_and_changes(
    expression: tuple[str, set[int], set[int]], zone: str, day: date, at: int
) -> None:
    text, minutes, hours = expression
    row = parse(text, zone)
    wanted = by_the_calendar(minutes=minutes, hours=hours, zone=zone, day=day)
    start, end = wanted[0], wanted[-1]
    assert walk(row, start=start, end=end) == wanted[1:]
    # Asked at any second, forwards and backwards, it says the same.
    moment = datetime.combine(day, datetime.min.time(), tzinfo=UTC) + timedelta(
        seconds=at
    )
    if start < moment < end:
        later = wanted[bisect_right(wanted, moment) :]
        earlier = wanted[1 : bisect_right(wanted, moment)]
        assert row.next_after(moment) == later[0]
        assert list(row.newest(since=start, now=moment)) == earlier[::-1]
        assert row.count(since=start, now=moment) == len(earlier)


@given(
    text=st.sampled_from(
        [
            "7s",
            "10s",
            "5m",
            "*/30 * * * *",
            "15 * * * *",
            "daily 23:00",
            "monthly 1,15 00:00",
            "0 */4 * * 1-5",
            "30 2 * * *",
        ]
    ),
    zone=st.sampled_from(ZONES),
    day=st.sampled_from(DAYS),
    restarts=st.lists(st.integers(1, 200_000), max_size=8),
)
def test_a_ticker_that_restarts_ticks_the_same_slots_as_one_that_does_not(
    text: str, zone: str, day: date, restarts: list[int]
) -> None:
    row = parse(text, zone)
    start = datetime.combine(day, datetime.min.time(), tzinfo=UTC) - timedelta(hours=12)
    # Far enough to contain the change, short enough for a row of seven seconds.
    end = start + min(timedelta(days=40), row.period * 400)
    steady = walk(row, start=start, end=end)
    ticked: list[datetime] = []
    looks = sorted({start + timedelta(seconds=offset) for offset in restarts} | {end})
    for look in looks:
        if look <= end:
            ticked += list(row.newest(since=ticked[-1] if ticked else start, now=look))[
                ::-1
            ]
    assert ticked == steady
