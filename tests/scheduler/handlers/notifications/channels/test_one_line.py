"""Text of any origin in a header or a title."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.handlers.notifications.channels.one_line import one_line

pytestmark = pytest.mark.once


@given(st.text(max_size=200))
def test_it_is_always_one_line_of_characters_that_can_be_sent(text: str) -> None:
    line = one_line(text, limit=100)
    assert len(line.splitlines()) <= 1
    assert "\x00" not in line
    line.encode()


def test_what_would_turn_its_neighbours_round_stands_as_its_number() -> None:
    assert one_line("a\u202eb", limit=100) == "a[U+202E]b"


def test_what_is_too_long_says_how_long_it_was() -> None:
    assert one_line("a" * 2_000, limit=5) == "aaaaa… (2,000 characters)"
