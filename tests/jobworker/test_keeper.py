"""Output is stored in batches, in order, and how late it is stands in the row."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, OperationalError, connections, transaction

from audit import clock, mask, transcript
from audit.models import LateResult, Line, Run
from jobworker import keeper as keeper_module
from jobworker.attempt import Attempt
from jobworker.finish import end, finish
from jobworker.keeper import Keeper
from jobworker.models import Job
from tests.waiting import wait_until
from workqueue.context import Outcome

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


def test_a_phase_that_was_not_committed_is_told_again(
    attempt: Make, monkeypatch: Any
) -> None:
    one = attempt()
    keeper, tell = keeper_of(one), keeper_module._tell
    one.context.phase("apply")

    def break_off(*of: Any) -> None:
        tell(*of)
        raise OperationalError("away")

    with monkeypatch.context() as away:
        away.setattr(keeper_module, "_tell", break_off)
        keeper._store_all([one])
    keeper._store_all([one])
    one.job.refresh_from_db()
    assert one.job.phase == "apply"


def test_lines_that_the_database_refuses_are_counted_and_those_of_other_jobs_are_stored(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = attempt(), attempt()
    store = transcript.store

    def refuse(lines: Any) -> None:
        if any(line.claim_id == one.claimed.claim_id for line in lines):
            raise DataError("refused")
        store(lines)

    monkeypatch.setattr(transcript, "store", refuse)
    for each in (one, other):
        each.context.log("first")
    keeper_of(one, other)._store_all([one, other])
    assert Line.objects.get().claim_id == other.claimed.claim_id
    closed = one.transcript.close()
    assert (closed.line_count, closed.dropped) == (0, 1)


def test_a_job_whose_end_is_being_stored_keeps_its_lines_for_that(
    attempt: Make,
) -> None:
    one = attempt()
    one.context.log("last words")
    with one.lock:
        thread = threading.Thread(target=keeper_of(one)._store_all, args=([one],))
        thread.start()
        thread.join(5)
    assert one.transcript.close().line_count == 1
    assert not Line.objects.exists()


def abandoned(one: Attempt) -> bool:
    """As somebody else ends it, who takes its worker for dead."""
    job = Job.objects.get(pk=one.job.pk)
    with transaction.atomic():
        return end(job, word="abandoned", code="abandoned", error="")


def test_what_is_said_after_the_claim_was_taken_is_no_line_but_a_late_result(
    attempt: Make,
) -> None:
    lost, mine = attempt(), attempt()
    keeper = keeper_of(lost, mine)
    lost.context.log("in time")
    keeper._store_all([lost, mine])
    assert abandoned(lost)
    for each in (lost, mine):
        each.context.log("after that")
        each.context.phase("next")
    keeper._store_all([lost, mine])
    lines = Line.objects.filter(claim_id=lost.claimed.claim_id)
    assert [line.text for line in lines] == ["in time"]
    assert Run.objects.get(id=lost.claimed.claim_id).line_count == 1
    assert Line.objects.filter(claim_id=mine.claimed.claim_id).count() == 1
    finish(lost, Outcome(), "succeeded", "", "")
    assert LateResult.objects.get().transcript == "after that"


def test_who_ends_a_job_while_its_lines_are_stored_waits_and_counts_them(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, ended, threads = attempt(), threading.Event(), []
    real = transcript.store

    def end_it() -> None:
        try:
            assert abandoned(one)
            ended.set()
        finally:
            connections.close_all()

    def store(lines: Any) -> None:
        threads.append(threading.Thread(target=end_it))
        threads[0].start()
        assert not ended.wait(0.5)
        real(lines)

    monkeypatch.setattr(transcript, "store", store)
    one.context.log("line")
    keeper_of(one)._store_all([one])
    threads[0].join(10)
    assert ended.is_set()
    assert Line.objects.count() == 1
    assert Run.objects.get().line_count == 1


@pytest.mark.postgresql
def test_a_row_that_somebody_writes_is_stored_with_the_next_batch(
    attempt: Make,
) -> None:
    """The beat writes the rows of all: waiting for it could be a deadlock."""
    busy, free = attempt(), attempt()
    for each in (busy, free):
        each.context.log("line")
    keeper = keeper_of(busy, free)
    with transaction.atomic():
        Job.objects.filter(pk=busy.job.pk).update(heartbeat_at=clock.now())
        thread = threading.Thread(target=store_and_leave, args=(keeper, [busy, free]))
        thread.start()
        thread.join(5)
        assert Line.objects.get().claim_id == free.claimed.claim_id
    keeper._store_all([busy, free])
    assert Line.objects.count() == 2


def store_and_leave(keeper: Keeper, attempts: list[Attempt]) -> None:
    try:
        keeper._store_all(attempts)
    finally:
        connections.close_all()


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


def test_the_end_of_the_thread_stores_all_there_is_and_the_row_counts_it(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "EVERY", 3600)
    monkeypatch.setattr(transcript, "LINES", 20)
    monkeypatch.setattr(transcript, "TAIL_LINES", 5)
    many, one = attempt(), attempt()
    keeper = keeper_of(many, one)
    keeper.start()
    for number in range(1, 101):
        many.context.log(str(number))
    monkeypatch.setattr(mask, "goes_on", lambda line: line == "half a secret")
    one.context.log("half a secret")
    keeper.end()
    for each, count, dropped in ((many, 20, 80), (one, 1, 0)):
        each.job.refresh_from_db()
        assert (each.job.line_count, each.job.dropped_lines) == (count, dropped)
        assert Line.objects.filter(claim_id=each.claimed.claim_id).count() == count
