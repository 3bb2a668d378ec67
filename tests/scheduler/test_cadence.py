"""Cadences: slots are computed, none is doubled, none is missed."""

import time
from bisect import bisect_left
from contextlib import suppress
from datetime import timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import cadence
from scheduler.cadence import MOST_COUNTED, missed, parse
from scheduler.exceptions import InvalidCadence
from tests.scheduler.instants import VIENNA, utc, walk

# --- intervals


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("5m", 300), ("12h", 43_200), ("2d", 172_800)],
)
def test_an_interval_is_aligned_to_the_epoch(text: str, seconds: int) -> None:
    slot = parse(text, "UTC").next_after(utc(2026, 11, 29, 14, 31, 7))
    assert slot is not None
    assert slot.timestamp() % seconds == 0
    assert (
        utc(2026, 11, 29, 14, 31, 7)
        < slot
        <= utc(2026, 11, 29, 14, 31, 7) + timedelta(seconds=seconds)
    )


def test_a_slot_is_not_its_own_successor() -> None:
    assert parse("10s", "UTC").next_after(utc(2026, 11, 29, 12)) == utc(
        2026, 11, 29, 12, 0, 10
    )


def test_two_weeks_of_a_two_second_row_are_counted_without_walking() -> None:
    row = parse("2s", "UTC")
    began = time.process_time()
    assert row.count(since=utc(2026, 11, 1), now=utc(2026, 11, 15)) == 604_800
    assert time.process_time() - began < 0.05


# --- what was missed


def test_missed_slots_are_counted_and_the_newest_kept() -> None:
    row = parse("10s", "UTC")
    found = missed(
        row, since=utc(2026, 11, 29, 12), now=utc(2026, 11, 29, 12, 1, 5), at_most=2
    )
    assert found.count == 6
    assert found.newest == (utc(2026, 11, 29, 12, 0, 50), utc(2026, 11, 29, 12, 1))


def test_nothing_is_missed_where_no_slot_went_by() -> None:
    found = missed(
        parse("daily 23:00", "UTC"),
        since=utc(2026, 11, 29, 1),
        now=utc(2026, 11, 29, 22, 59),
    )
    assert (found.count, found.newest) == (0, ())


def test_years_of_a_minutely_expression_are_not_walked_to_the_end() -> None:
    row = parse("* * * * *", VIENNA)
    began = time.process_time()
    found = missed(row, since=utc(2016, 1, 1), now=utc(2026, 11, 29, 12))
    assert found.count == MOST_COUNTED
    assert found.newest == (utc(2026, 11, 29, 12),)
    assert time.process_time() - began < 2


# --- what is refused


@pytest.mark.parametrize(
    "text",
    [
        "0 0 30 2 *",
        "0 0 31 4 *",
        "0 0 31 2,4,6 *",
        "61 * * * *",
        "",
        "   ",
        "x" * 300,
        "* * * * * *",
        "*/5 * * * * *",
        "whenever",
        "@reboot",
        "@REBOOT",
        "0s",
        "-5s",
        "1.5s",
        "367d",
        "999999999d",
        "\N{ARABIC-INDIC DIGIT THREE}s",
        "daily 24:00",
        "daily 23:60",
        "daily",
        "monthly 0 00:00",
        "monthly 32 00:00",
        "monthly 1, 00:00",
        "0 0 */31 * MON#5",
        "0 0 */30 2 MON#5",
        "1-100000000 * * * *",
        "* * * * * \x00",
    ],
)
def test_a_bad_cadence_is_refused_with_a_sentence_within_200_ms(text: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidCadence) as refused:
        parse(text, VIENNA)
    assert time.process_time() - began < 0.2
    assert str(refused.value).endswith(".")


def test_six_fields_are_refused_because_cronsim_reads_the_first_as_seconds() -> None:
    with pytest.raises(
        InvalidCadence, match=r"this has 6\. It would be read as seconds"
    ):
        parse("0 0 12 * * *", "UTC")


@given(text=st.text(max_size=120))
def test_any_text_is_a_cadence_or_refused_never_an_error(text: str) -> None:
    try:
        row = parse(text, VIENNA)
    except InvalidCadence:
        return
    assert row.next_after(utc(2026, 11, 29)) is not None


@given(
    fields=st.lists(
        st.text(alphabet="0123456789*,-/LW#MONFEB", min_size=1, max_size=6),
        min_size=5,
        max_size=5,
    )
)
def test_any_five_fields_are_read_or_refused_in_time(fields: list[str]) -> None:
    began = time.process_time()
    with suppress(InvalidCadence):
        parse(" ".join(fields), VIENNA)
    assert time.process_time() - began < 1


# --- words


@pytest.mark.parametrize("alias", sorted(cadence.ALIASES))
def test_the_seven_aliases_are_read(alias: str) -> None:
    assert len(cadence.ALIASES) == 7
    assert parse(alias, "UTC").next_after(utc(2026, 11, 29, 12, 30)) is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2s", "Every 2\N{NO-BREAK SPACE}s"),
        ("5m", "Every 5\N{NO-BREAK SPACE}min"),
        ("1h", "Every hour, on the hour"),
        ("12h", "Every 12\N{NO-BREAK SPACE}h"),
        ("daily 23:00", "Daily at 23:00"),
        ("monthly 1,15 00:00", "At 00:00 on the 1st and 15th"),
        ("monthly 3,2,22 06:30", "At 06:30 on the 2nd, 3rd and 22nd"),
        ("@daily", "At 00:00 every day"),
        ("0 0 1,15 * *", "At 00:00 on the first and the 15th day of month"),
    ],
)
def test_a_cadence_says_itself_in_words(text: str, words: str) -> None:
    assert parse(text, "UTC").words == words


def test_the_period_is_the_shortest_distance_of_two_slots() -> None:
    assert parse("10s", "UTC").period == timedelta(seconds=10)
    assert parse("daily 23:00", VIENNA).period == timedelta(days=1)
    assert parse("monthly 1,15 00:00", VIENNA).period == timedelta(days=14)


def test_the_next_slots_of_the_first_and_the_fifteenth_follow_summer_time() -> None:
    row = parse("monthly 1,15 00:00", "Europe/Berlin")
    slots = list(islice(walk(row, start=utc(2026, 11, 29), end=utc(2027, 5, 1)), 10))
    assert slots[0] == utc(2026, 11, 30, 23)
    assert slots[8] == utc(2027, 3, 31, 22)
    assert bisect_left(slots, utc(2026, 12, 14, 23)) == 1
