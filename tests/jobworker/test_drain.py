"""The end of a job worker: who is told what, and when."""

import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError

from audit import clock
from jobworker import drain as draining
from jobworker.attempt import Attempt
from jobworker.drain import Steps, drain

Make = Callable[..., Attempt]


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time goes by as fast as the drain sleeps; what has passed is told."""
    passed = [0.0]
    monkeypatch.setattr(clock, "steady", lambda: passed[0])

    def sleep(seconds: float) -> None:
        passed[0] += seconds

    monkeypatch.setattr(draining.time, "sleep", sleep)
    return passed


def test_programs_are_interrupted_eight_seconds_before_the_end_and_the_rest_given_up(
    attempt: Make, passing: list[float]
) -> None:
    deaf, reacts, told = attempt(), attempt(), []

    def running() -> list[Attempt]:
        if reacts.context.stopping.is_set():
            told.append(passing[0])
            return [deaf]
        return [deaf, reacts]

    left = drain(running, end=20, look=lambda: None)
    assert left == [deaf.claimed.claim_id]
    assert told[0] == pytest.approx(12, abs=0.2)
    assert (deaf.context.reason, deaf.context.kill_at) == ("drain", 21)
    assert passing[0] <= 20 + 2


def test_a_worker_with_nothing_in_hand_ends_at_once(passing: list[float]) -> None:
    assert drain(list, end=20, look=lambda: None) == []
    assert passing[0] == 0


def test_a_drain_shorter_than_the_interruption_interrupts_at_once(
    attempt: Make, passing: list[float]
) -> None:
    one = attempt()
    drain(lambda: [one], end=3, look=lambda: None)
    assert one.context.reason == "drain"
    assert passing[0] <= 3 + 2


def test_cancels_and_time_limits_are_looked_for_every_second_until_the_end(
    attempt: Make, passing: list[float]
) -> None:
    one, looks = attempt(), []
    drain(lambda: [one], end=20, look=lambda: looks.append(passing[0]))
    assert looks == pytest.approx(list(range(len(looks))), abs=1.5)
    assert 18 <= len(looks) <= 21
    assert looks[-1] < 20


# --- steps in the database


def test_a_step_that_does_not_end_keeps_nobody_waiting_and_the_next_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    goes_on, done = threading.Event(), []
    steps = Steps(end=clock.steady() + 60)
    try:
        began = clock.steady()
        steps.do(goes_on.wait, within=0.05)
        for _ in range(3):
            steps.do(lambda: done.append("too early"), within=0.05)
        assert clock.steady() - began < 5
    finally:
        goes_on.set()
    steps.do(lambda: done.append("last"), within=5)
    assert done == ["last"]
    assert [one.getMessage() for one in caplog.records] == [
        "drain goes on without the database: it does not answer"
    ]


def test_nobody_waits_for_a_step_beyond_the_end() -> None:
    goes_on, began = threading.Event(), clock.steady()
    try:
        Steps(end=began + 0.05).do(goes_on.wait, within=60)
        assert clock.steady() - began < 5
    finally:
        goes_on.set()


def test_what_a_step_raises_is_said_once_until_one_is_done_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away() -> None:
        raise OperationalError("gone\nfor good")

    steps = Steps(end=clock.steady() + 60)
    for act in (away, away, list, away):
        steps.do(act, within=5)
    assert [one.getMessage() for one in caplog.records] == [
        "drain goes on without the database: gone for good"
    ] * 2
