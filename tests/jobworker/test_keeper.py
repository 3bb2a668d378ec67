"""Output is stored in batches, in order, and how late it is stands in the row."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from audit import clock, transcript
from audit.models import Line
from jobworker.attempt import Attempt
from jobworker.keeper import Keeper
from tests.waiting import wait_until

Make = Callable[..., Attempt]


def keeper_of(*attempts: Attempt) -> Keeper:
    return Keeper(running=lambda: attempts)


def test_lines_of_all_jobs_go_by_one_insert_and_each_row_tells_how_it_goes(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = attempt(), attempt()
    for number in range(100):
        first.context.log(f"first {number}")
        second.context.log(f"second {number}")
    first.context.phase("apply")
    first.context.progress(40)
    batches: list[int] = []
    real = transcript.store

    def store(lines: Any) -> None:
        batches.append(len(lines))
        real(lines)

    monkeypatch.setattr(transcript, "store", store)
    keeper_of(first, second)._store_all([first, second])
    assert batches == [200]
    assert Line.objects.count() == 200
    first.job.refresh_from_db()
    assert (first.job.line_count, first.job.phase, first.job.progress) == (
        100,
        "apply",
        40,
    )
    assert first.job.progress_at is not None
    assert first.lag_ms is not None
    assert first.lag_ms >= 0


def test_a_row_is_told_once_a_second_but_a_new_phase_at_once(attempt: Make) -> None:
    one = attempt()
    keeper = keeper_of(one)
    one.context.log("a")
    keeper._store_all([one])
    one.context.log("b")
    keeper._store_all([one])
    one.job.refresh_from_db()
    assert (one.job.line_count, Line.objects.count()) == (1, 2)
    one.context.phase("next")
    keeper._store_all([one])
    one.job.refresh_from_db()
    assert (one.job.line_count, one.job.phase) == (2, "next")


def test_while_the_database_is_away_nothing_is_lost_or_doubled(
    attempt: Make, monkeypatch: Any
) -> None:
    one = attempt()
    keeper = keeper_of(one)
    one.context.log("before")

    def refuse(_: object) -> None:
        raise OperationalError("away")

    with monkeypatch.context() as away:
        away.setattr(transcript, "store", refuse)
        keeper._store_all([one])
    assert Line.objects.count() == 0
    one.context.log("after")
    keeper._store_all([one])
    assert list(Line.objects.order_by("seq").values_list("text", flat=True)) == [
        "before",
        "after",
    ]


def test_a_job_whose_end_is_being_stored_keeps_its_lines_for_that(
    attempt: Make,
) -> None:
    one = attempt()
    one.context.log("last words")
    with one.lock:
        thread = threading.Thread(target=keeper_of(one)._store_all, args=([one],))
        thread.start()
        thread.join(5)
    assert one.unstored == []
    assert len(one.transcript.take()) == 1


def test_the_thread_follows_what_runs_and_ends(attempt: Make) -> None:
    one = attempt()
    running: list[Attempt] = []
    keeper = Keeper(running=lambda: running)
    keeper.start()
    running.append(one)
    keeper.wake()
    one.context.log("line")
    wait_until(lambda: Line.objects.count() == 1, within=5, what="the line")
    at = Line.objects.get().at
    assert clock.now() - at < timedelta(seconds=10)
    keeper.end()
    assert not keeper._thread.is_alive()
