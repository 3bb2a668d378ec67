"""Lines and progress of long runs."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from django.db import OperationalError

from audit import queries, transcript
from workqueue.attempt import Attempt
from workqueue.follow import LEFT_OUT, Follower
from workqueue.models import WorkItem

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
    follow._store()
    one.transcript.write(20, "second")
    follow._store()
    lines = queries.lines(one.claimed.claim_id, after=0, limit=10)
    assert [(line.seq, line.text) for line in lines] == [(1, "first"), (2, "second")]


def test_a_short_run_is_left_to_its_finish(attempt: Make) -> None:
    one = attempt()
    one.transcript.write(20, "first")
    Follower(running=lambda: [one])._store()
    assert queries.lines(one.claimed.claim_id, after=0, limit=10) == []


def test_lines_that_could_not_be_stored_are_stored_with_the_next(attempt: Make) -> None:
    one = attempt()
    one.transcript.write(20, "first")
    follow = follower(one)
    with (
        patch.object(transcript, "store", side_effect=OperationalError("gone")),
        pytest.raises(OperationalError),
    ):
        follow._store()
    one.transcript.write(20, "second")
    follow._store()
    assert [
        line.text for line in queries.lines(one.claimed.claim_id, after=0, limit=10)
    ] == ["first", "second"]


def test_progress_is_shown_on_the_item_of_this_attempt_only(attempt: Make) -> None:
    one = attempt()
    one.progress = {"percent": 40}
    follower(one)._store()
    assert WorkItem.objects.get().progress == {"percent": 40}
    WorkItem.objects.update(claim_id=None)
    one.progress = {"percent": 50}
    follower(one)._store()
    assert WorkItem.objects.get().progress == {"percent": 40}


def test_lines_that_the_limit_leaves_out_are_counted_beside_the_progress(
    attempt: Make,
) -> None:
    one = attempt()
    one.progress = {"percent": 40}
    follow = follower(one)
    follow._store()
    one.transcript.dropped = 7
    follow._store()
    assert WorkItem.objects.get().progress == {"percent": 40, LEFT_OUT: 7}
    one.transcript.dropped = 9
    one.progress = {"percent": 50}
    follow._store()
    assert WorkItem.objects.get().progress == {"percent": 50, LEFT_OUT: 9}
    WorkItem.objects.update(progress=None)
    follow._store()  # nothing grew, nothing is written
    assert WorkItem.objects.get().progress is None
