"""Lines and progress of long runs."""

from collections.abc import Callable
from functools import reduce
from unittest.mock import patch

import pytest
from django.db import DataError, OperationalError

from audit import clock, queries, transcript
from audit.models import Line, Run
from workqueue import follow as follow_module
from workqueue.attempt import Attempt, Finished
from workqueue.context import Outcome
from workqueue.finish import finish
from workqueue.follow import LEFT_OUT, Follower
from workqueue.models import Node, WorkItem

Make = Callable[..., Attempt]


def follower(*attempts: Attempt) -> Follower:
    for attempt in attempts:
        attempt.taken_at -= 5  # it has run for a while
    return Follower(running=lambda: attempts)


def test_lines_of_a_run_longer_than_a_second_are_stored_while_it_runs(
    attempt: Make,
) -> None:
    one = attempt()
    one.transcript.write(20, "first")
    follow = follower(one)
    follow._follow()
    one.transcript.write(20, "second")
    follow._follow()
    lines = queries.lines(one.claimed.claim_id, after=0, limit=10)
    assert [(line.seq, line.text) for line in lines] == [(1, "first"), (2, "second")]


def test_a_short_run_is_left_to_its_finish(attempt: Make) -> None:
    one = attempt()
    one.transcript.write(20, "first")
    Follower(running=lambda: [one])._follow()
    assert queries.lines(one.claimed.claim_id, after=0, limit=10) == []


def test_lines_that_could_not_be_stored_are_stored_with_the_next(attempt: Make) -> None:
    one = attempt()
    one.transcript.write(20, "first")
    follow = follower(one)
    with patch.object(transcript, "store", side_effect=OperationalError("gone")):
        follow._follow()
    one.transcript.write(20, "second")
    follow._follow()
    assert [
        line.text for line in queries.lines(one.claimed.claim_id, after=0, limit=10)
    ] == ["first", "second"]


def test_progress_is_shown_on_the_item_of_this_attempt_only(attempt: Make) -> None:
    one = attempt()
    one.progress = {"percent": 40}
    follower(one)._follow()
    assert WorkItem.objects.get().progress == {"percent": 40}
    WorkItem.objects.update(claim_id=None)
    one.progress = {"percent": 50}
    follower(one)._follow()
    assert WorkItem.objects.get().progress == {"percent": 40}


def test_lines_that_the_limit_leaves_out_are_counted_beside_the_progress(
    attempt: Make,
) -> None:
    one = attempt()
    one.progress = {"percent": 40}
    follow = follower(one)
    follow._follow()
    one.transcript.dropped = 7
    follow._follow()
    assert WorkItem.objects.get().progress == {"percent": 40, LEFT_OUT: 7}
    one.transcript.dropped = 9
    one.progress = {"percent": 50}
    follow._follow()
    assert WorkItem.objects.get().progress == {"percent": 50, LEFT_OUT: 9}
    WorkItem.objects.update(progress=None)
    follow._follow()  # nothing grew, nothing is written
    assert WorkItem.objects.get().progress is None


@pytest.mark.parametrize(
    "bad",
    [
        {"at": clock.now(), "of": {1, 2}},
        {"deep": reduce(lambda inner, _: [inner], range(5_000), 0)},
        {"text": "a\0b\ud800", "nan": float("nan")},
        {1: object()},
    ],
)
def test_whatever_one_attempt_tells_of_itself_costs_the_others_no_line(
    attempt: Make, bad: dict[str, object]
) -> None:
    one, other = attempt("one"), attempt("other")
    one.progress = bad
    follow = follower(one, other)
    for text in ("first", "second"):
        other.transcript.write(20, text)
        follow._follow()
    lines = queries.lines(other.claimed.claim_id, after=0, limit=10)
    assert [line.text for line in lines] == ["first", "second"]
    assert WorkItem.objects.get(id=one.claimed.id).progress is not None


def test_lines_that_the_database_refuses_are_counted_and_those_of_others_are_stored(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = attempt("one"), attempt("other")
    store = transcript.store

    def refuse(lines: list[transcript.LineRow]) -> None:
        if any(line.claim_id == one.claimed.claim_id for line in lines):
            raise DataError("refused")
        store(lines)

    monkeypatch.setattr(transcript, "store", refuse)
    for each in (one, other):
        each.transcript.write(20, "first")
    follower(one, other)._follow()
    assert Line.objects.get().claim_id == other.claimed.claim_id
    closed = one.transcript.close()
    assert (closed.line_count, closed.dropped) == (0, 1)


def test_progress_is_told_later_where_its_row_is_locked_at_the_moment(
    attempt: Make,
) -> None:
    one = attempt()
    one.progress = {"percent": 40}
    follow = follower(one)
    with patch.object(follow_module, "_held", return_value=set()):
        follow._follow()
    assert WorkItem.objects.get().progress is None
    follow._follow()
    assert WorkItem.objects.get().progress == {"percent": 40}


def test_behind_a_run_that_somebody_else_has_closed_nothing_is_written(
    attempt: Make,
) -> None:
    one = attempt()
    one.transcript.write(20, "first")
    one.progress = {"percent": 40}
    WorkItem.objects.update(claim_id=clock.uuid7())
    follower(one)._follow()
    assert not Line.objects.exists()
    assert WorkItem.objects.get().progress is None


def test_what_was_taken_and_not_stored_is_stored_with_the_finish(
    attempt: Make, me: Node
) -> None:
    one = attempt()
    one.transcript.write(20, "first")
    with patch.object(transcript, "store", side_effect=OperationalError("gone")):
        follower(one)._follow()
    one.transcript.write(20, "second")
    done = Finished(one, Outcome(), "succeeded", "", clock.now())
    finish([done], node_id=me.id, node="host, 1")
    lines = queries.lines(one.claimed.claim_id, after=0, limit=10)
    assert [line.text for line in lines] == ["first", "second"]
    assert Run.objects.get().line_count == 2


def test_the_end_of_the_thread_stores_all_there_is(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_module, "EVERY", 3600)
    monkeypatch.setattr(transcript, "LINES", 20)
    monkeypatch.setattr(transcript, "TAIL_LINES", 5)
    one = attempt()
    follow = follower(one)
    follow.start()
    for number in range(1, 101):
        one.transcript.write(20, str(number))
    follow.end()
    lines = queries.lines(one.claimed.claim_id, after=0, limit=100)
    assert [line.seq for line in lines] == [*range(1, 16), *range(96, 101)]
    item = WorkItem.objects.get()
    assert item.progress == {LEFT_OUT: 80}
