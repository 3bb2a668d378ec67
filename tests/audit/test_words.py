"""Words: the same wording for the same thing, whoever says it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from audit import words

pytestmark = pytest.mark.once

NOW = datetime(2026, 11, 29, 14, 32, 10, tzinfo=UTC)
NBSP = "\u00a0"


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (timedelta(), "0 s"),
        (timedelta(milliseconds=88), "88 ms"),
        (timedelta(milliseconds=999.6), "1 s"),
        (timedelta(seconds=1.94), "1.94 s"),
        (timedelta(seconds=6), "6 s"),
        (timedelta(seconds=9.996), "10 s"),
        (timedelta(seconds=41.2), "41 s"),
        (timedelta(seconds=59.6), "1 min"),
        (timedelta(minutes=4, seconds=38), "4 min 38 s"),
        (timedelta(hours=5, minutes=18, seconds=9), "5 h 18 min"),
        (timedelta(days=1, hours=8, minutes=59), "1 d 8 h"),
        (timedelta(days=1, minutes=59), "1 d"),
        (timedelta(seconds=-3), "\u22123 s"),
        (None, "\u2013"),
    ],
)
def test_a_duration_has_at_most_two_units(span, said):
    assert words.duration(span).replace(NBSP, " ") == said


def test_a_unit_never_stands_alone_on_the_next_line():
    assert words.duration(timedelta(seconds=41)) == f"41{NBSP}s"


@pytest.mark.parametrize(
    ("past", "said"),
    [
        (timedelta(milliseconds=900), "just now"),
        (timedelta(seconds=7), "7 s ago"),
        (timedelta(minutes=7, seconds=29), "7 min ago"),
        (timedelta(hours=2, minutes=31), "2 h 31 min ago"),
        (timedelta(hours=18, minutes=30), "18 h ago"),
        (timedelta(hours=24), "yesterday 14:32"),
        (timedelta(days=3, hours=5), "26 Nov 09:32"),
        (timedelta(days=400), "25 Oct 2025 14:32"),
        (-timedelta(seconds=20), "in 20 s"),
        (-timedelta(hours=7, minutes=27, seconds=50), "in 7 h 27 min"),
        (-timedelta(days=1, hours=8), "in 1 d 8 h"),
    ],
)
def test_a_time_is_relative_up_to_a_day(past, said):
    assert words.ago(NOW - past, NOW).replace(NBSP, " ") == said


def test_yesterday_is_a_day_of_the_readers_zone():
    late = datetime(2026, 11, 28, 23, 30, tzinfo=UTC)
    with timezone.override("Europe/Berlin"):
        assert words.day_and_time(late, NOW) == "today 00:30"
    with timezone.override("UTC"):
        assert words.day_and_time(late, NOW) == "yesterday 23:30"


def test_an_unknown_number_is_a_dash_and_never_0():
    assert words.number(None) == "\u2013"
    assert words.number(0) == "0"
    assert words.number(10_000) == "10,000"


def test_text_that_would_turn_its_neighbours_round_is_spelled_out():
    assert words.shown("abc\u202etxt.exe") == "abc[U+202E]txt.exe"


def test_a_nul_and_half_a_surrogate_are_spelled_out():
    assert words.shown("a\0b\ud800c") == "a[U+0000]b[U+D800]c"


def test_joiners_that_scripts_and_emoji_need_stay():
    assert words.shown("\U0001f469\u200d\U0001f52c") == "\U0001f469\u200d\U0001f52c"


def test_a_text_of_a_megabyte_is_cut_and_says_how_long_it_is():
    text = words.shown("x" * 1_000_000, limit=200)
    assert text == "x" * 200 + "\u2026 (1,000,000 characters)"
