"""Stretches of a transcript: every line once, wherever the reader begins."""

import logging
from datetime import timedelta
from uuid import UUID

import pytest

from audit import clock, transcript, window
from audit.transcript import LineRow
from tests import factories, screens

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "FIRST", 10)
    monkeypatch.setattr(window, "LINES", 15)


def stored(count: int, *, without: range = range(0)) -> UUID:
    claim = clock.uuid7()
    at = clock.now()
    transcript.store(
        [
            LineRow(claim, n, at + timedelta(seconds=n), logging.INFO, f"line {n}")
            for n in range(1, count + 1)
            if n not in without
        ]
    )
    return claim


def numbers(found: window.Window) -> list[int]:
    return [line.row.seq for line in found.lines]


def test_the_tail_shows_the_newest_and_says_how_many_lie_above():
    claim = stored(25)
    found = window.tail(claim)
    assert numbers(found) == list(range(16, 26))
    assert (found.above, found.first, found.last, found.below) == (15, 16, 25, False)


def test_loading_earlier_reaches_the_first_line_without_a_gap_or_a_double():
    claim = stored(25)
    seen, found = [], window.tail(claim)
    while True:
        seen = numbers(found) + seen
        if not found.above:
            break
        found = window.before(claim, found.first)
    assert seen == list(range(1, 26))


def test_following_goes_on_behind_the_last_line():
    claim = stored(18)
    first = window.after(claim, 0)
    assert (first.below, len(first.lines)) == (True, 15)
    second = window.after(claim, first.last)
    assert (numbers(first) + numbers(second), second.below) == (
        list(range(1, 19)),
        False,
    )
    nothing = window.after(claim, second.last)
    assert (nothing.lines, nothing.last) == ((), 18)


def test_a_link_to_a_line_opens_a_little_above_it():
    assert numbers(window.around(stored(40), 30)) == list(range(29, 39))
    assert numbers(window.around(stored(3), 1)) == [1, 2, 3]


def test_what_the_cap_left_out_is_counted_where_it_is_missing():
    claim = stored(12, without=range(4, 9))
    assert [line.gap for line in window.tail(claim).lines] == [0, 0, 0, 5, 0, 0, 0]


def test_a_short_transcript_is_read_from_its_run_in_the_same_way():
    short = "\n".join(
        f"2026-11-29T14:31:58.20400{n}Z WARNING line {n}" for n in range(1, 6)
    )
    run = screens.run(factories.tenant("acme"), transcript=short, line_count=5)
    found = window.tail(run.id)
    assert numbers(found) == [1, 2, 3, 4, 5]
    assert {(line.level, line.tone) for line in found.lines} == {("WARNING", "w")}
    assert numbers(window.before(run.id, 3)) == [1, 2]
    assert [line.text for line in window.everything(run.id)] == [
        f"line {n}" for n in range(1, 6)
    ]


def test_nothing_written_is_an_empty_stretch():
    found = window.tail(clock.uuid7())
    assert (found.lines, found.above, found.last, found.below) == ((), 0, 0, False)
