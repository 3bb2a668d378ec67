import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from audit import clock, text, transcript
from audit.models import Line
from audit.transcript import LineRow, Transcript

once = pytest.mark.once


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A cap that a test can reach."""

    def cap(*, lines: int = 20, tail: int = 5) -> None:
        monkeypatch.setattr(transcript, "LINES", lines)
        monkeypatch.setattr(transcript, "TAIL_LINES", tail)

    return cap


def numbers(rows: list[LineRow]) -> list[int]:
    return [row.seq for row in rows]


# --- what is kept


@once
def test_a_short_transcript_is_kept_as_one_text(one: Transcript):
    one.write(logging.INFO, "first")
    one.write(logging.WARNING, "second\nthird")
    closed = one.close()
    assert (closed.rest, closed.line_count, closed.dropped) == ([], 3, 0)
    assert [line.split(" ", 1)[1] for line in closed.short.split("\n")] == [
        "INFO first",
        "WARNING second",
        "WARNING third",
    ]


@once
@given(
    st.lists(
        st.tuples(
            st.sampled_from([10, 20, 25, 30, 40, 50]),
            st.text(st.characters(exclude_characters="\n\0"), max_size=40).filter(
                lambda said: text.gate(said) == said
            ),
        ),
        max_size=20,
    )
)
def test_a_short_transcript_is_read_back_as_it_was_written(
    entries: list[tuple[int, str]],
):
    one = Transcript(claim_id=clock.uuid7())
    for level, said in entries:
        one.write(level, said)
    closed = one.close()
    rows = transcript.parse(closed.short, clock.uuid7())
    assert [(row.level, row.text) for row in rows] == entries
    assert numbers(rows) == list(range(1, len(entries) + 1))
    assert all(clock.now() - row.at < timedelta(minutes=1) for row in rows)


@once
def test_what_no_transcript_wrote_is_shown_as_it_stands():
    id = clock.uuid7()
    rows = transcript.parse("no time here\n2026-01-01T00:00:00Z LOUD x", id)
    assert [row.text for row in rows] == ["no time here", "2026-01-01T00:00:00Z LOUD x"]
    assert rows[0].at == clock.uuid7_time(id)


@once
def test_what_is_stored_is_not_kept_in_the_run_again(one: Transcript):
    one.write(20, "first")
    taken = one.take()
    one.stored(len(taken))
    one.write(20, "second")
    closed = one.close()
    assert numbers(taken) == [1]
    assert (closed.short, numbers(closed.rest), closed.line_count) == ("", [2], 2)


@once
def test_what_was_taken_comes_again_until_it_is_stored_and_with_the_end(
    one: Transcript,
):
    one.write(20, "first")
    assert numbers(one.take()) == [1]
    one.write(20, "second")
    assert numbers(one.take()) == [1, 2]
    one.stored(1)
    assert numbers(one.take()) == [2]
    one.write(20, "third")
    closed = one.close()
    assert (closed.short, numbers(closed.rest), closed.line_count) == ("", [2, 3], 3)
    one.stored(1)  # a commit that came late
    assert one.close() == closed


@once
def test_what_the_database_refuses_of_a_run_that_goes_on_is_counted(one: Transcript):
    one.write(20, "first")
    one.take()
    one.leave_out()
    one.write(20, "second")
    closed = one.close()
    assert (numbers(transcript.parse(closed.short, clock.uuid7())), closed.dropped) == (
        [1],
        1,
    )


@once
def test_a_transcript_over_eight_kilobytes_is_kept_in_lines(one: Transcript):
    for number in range(200):
        one.write(20, f"{number:050d}")
    closed = one.close()
    assert closed.short == ""
    assert numbers(closed.rest) == list(range(1, 201))


@once
def test_closing_twice_gives_the_same_and_later_lines_are_ignored(one: Transcript):
    one.write(20, "first")
    first = one.close()
    one.write(20, "too late")
    assert one.close() == first
    assert one.take() == []


@once
def test_an_attempt_whose_lines_cannot_be_stored_counts_them(one: Transcript):
    for number in range(7):
        one.write(20, str(number))
    one.stored(len(one.take()))
    one.write(20, "more")
    one.close()
    one.discard()
    closed = one.close()
    assert (closed.short, closed.rest, closed.line_count, closed.dropped) == (
        "",
        [],
        7,
        1,
    )


@once
def test_nothing_that_is_written_raises(one: Transcript):
    one.write(20, None)  # type: ignore[arg-type]
    one.write(20, "a\0b\udcd1")
    closed = one.close()
    assert closed.short.endswith("INFO a␀b\\udcd1")
    assert closed.dropped == 1


# --- beyond the cap


@once
def test_head_and_tail_are_kept_and_the_rest_is_counted(
    one: Transcript, small: Callable[..., None]
):
    small(lines=20, tail=5)
    for number in range(1, 101):
        one.write(20, str(number))
    assert one.dropped == 80
    closed = one.close()
    assert [int(row.text) for row in closed.rest] == [
        *range(1, 16),
        *range(96, 101),
    ]
    assert numbers(closed.rest) == [int(row.text) for row in closed.rest]
    assert (closed.line_count, closed.dropped) == (20, 80)


@once
def test_a_follower_sees_the_head_and_a_counter_and_the_tail_at_the_end(
    one: Transcript, small: Callable[..., None]
):
    small(lines=20, tail=5)
    for number in range(1, 101):
        one.write(20, str(number))
    assert numbers(one.take()) == list(range(1, 16))
    one.stored(15)
    for number in range(101, 111):
        one.write(20, str(number))
    assert one.take() == []
    assert one.dropped == 90
    closed = one.close()
    assert numbers(closed.rest) == list(range(106, 111))
    assert (closed.line_count, closed.dropped) == (20, 90)


@once
def test_who_is_given_up_leaves_the_tail_and_what_comes_after_is_in_its_end(
    one: Transcript, small: Callable[..., None]
):
    small(lines=20, tail=5)
    for number in range(1, 101):
        one.write(20, str(number))
    taken = one.take(last=True)
    assert numbers(taken) == [*range(1, 16), *range(96, 101)]
    assert one.dropped == 80
    assert one.take(last=True) == taken
    one.stored(len(taken))
    one.write(20, "101")
    closed = one.close()
    assert numbers(closed.rest) == [101]
    assert (closed.line_count, closed.dropped) == (21, 80)


@once
def test_the_cap_in_bytes_holds_for_few_long_lines(
    one: Transcript, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transcript, "BYTES", 100_000)
    monkeypatch.setattr(transcript, "TAIL_BYTES", 10_000)
    for number in range(1_000):
        one.write(20, f"{number:01000d}")
    closed = one.close()
    assert 90 <= closed.line_count <= 102
    assert closed.line_count + closed.dropped == 1_000
    assert closed.rest[-1].text.endswith("999")


class Writing(RuleBasedStateMachine):
    """Any order of writing and taking, against a plain list of what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(transcript, "LINES", 12)
        self.patch.setattr(transcript, "TAIL_LINES", 4)
        self.one = Transcript(claim_id=clock.uuid7())
        self.written: list[str] = []
        self.taken: list[LineRow] = []

    @rule(lines=st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
    def write(self, lines: list[str]) -> None:
        self.one.write(20, "\n".join(lines))
        self.written += lines

    @rule()
    def take(self) -> None:
        lines = self.one.take()
        self.taken += lines
        self.one.stored(len(lines))

    @invariant()
    def order_is_kept_and_losses_are_counted(self) -> None:
        numbers = [row.seq for row in self.taken]
        assert numbers == sorted(set(numbers))
        assert [row.text for row in self.taken] == [
            self.written[n - 1] for n in numbers
        ]

    def teardown(self) -> None:
        self.patch.undo()
        closed = self.one.close()
        kept = self.taken + (
            closed.rest or transcript.parse(closed.short, clock.uuid7())
        )
        numbers = [row.seq for row in kept]
        count = len(self.written)
        assert closed.line_count == len(kept)
        assert closed.line_count + closed.dropped == count
        # The head in a row, then the tail in a row: the gap is what was counted.
        head = list(range(1, min(count, 8) + 1))
        tail = list(range(max(len(head) + 1, count - 3), count + 1))
        assert numbers == head + tail
        assert [row.text for row in kept] == [self.written[n - 1] for n in numbers]


Writing.TestCase.settings = settings(max_examples=30, stateful_step_count=20)
TestWriting = once(Writing.TestCase)


# --- secrets


@once
def test_a_secret_over_two_entries_is_masked_though_the_first_was_asked_for(
    no_secrets: None, one: Transcript
):
    text.register_secret("correct-horse-battery")
    one.write(20, "before")
    one.write(20, "the value is correct-hor")
    assert [row.text for row in one.take()] == ["before"]
    one.write(20, "se-battery and more")
    taken = one.take()
    assert [row.text for row in taken] == [
        "before",
        "the value is ••••",
        "•••• and more",
    ]
    assert numbers(taken) == [1, 2, 3]


@once
def test_a_line_that_only_began_like_a_secret_comes_with_the_next(
    no_secrets: None, one: Transcript
):
    text.register_secret("correct-horse-battery")
    one.write(20, "this is correct")
    assert one.take() == []
    one.write(20, "indeed")
    assert [row.text for row in one.take()] == ["this is correct", "indeed"]


@once
def test_a_line_that_waits_for_the_next_is_not_kept_from_the_last_look(
    no_secrets: None, one: Transcript
):
    text.register_secret("correct-horse-battery")
    one.write(20, "this is correct")
    assert [row.text for row in one.take(last=True)] == ["this is correct"]


@once
def test_a_secret_in_the_tail_is_masked_too(
    no_secrets: None, one: Transcript, small: Callable[..., None]
):
    small(lines=10, tail=6)
    text.register_secret("correct-horse-battery")
    for _ in range(30):
        one.write(20, "correct-horse-battery, password=x")
        one.write(20, "torn: correct-ho")
        one.write(20, "rse-battery")
    said = " ".join(row.text for row in one.close().rest)
    assert "horse" not in said
    assert "correct-ho" not in said
    assert "rse-battery" not in said
    assert "password=x" not in said


# --- in the database


@pytest.mark.django_db
def test_lines_are_stored_as_they_were_written(one: Transcript):
    for number in range(2_500):
        one.write(30 if number % 2 else 20, f"line {number} ␀ ü")
    transcript.store(one.close().rest)
    stored = list(Line.objects.order_by("seq").values_list("seq", "level", "text"))
    assert stored == [
        (n + 1, 30 if n % 2 else 20, f"line {n} ␀ ü") for n in range(2_500)
    ]
    at = Line.objects.get(seq=1).at
    assert abs(at - clock.now()) < timedelta(minutes=1)


@pytest.mark.django_db
def test_storing_nothing_asks_nothing(django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        transcript.store([])


@pytest.mark.django_db(transaction=True)
def test_lines_are_part_of_the_callers_transaction(one: Transcript):
    one.write(20, "x")
    with transaction.atomic():
        transcript.store(one.take())
        transaction.set_rollback(True)
    assert not Line.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_line_whose_commit_got_no_reply_is_stored_once(one: Transcript):
    one.write(20, "x")
    transcript.store(one.take())
    one.write(20, "y")
    transcript.store(one.take())
    assert list(Line.objects.order_by("seq").values_list("text", flat=True)) == [
        "x",
        "y",
    ]
