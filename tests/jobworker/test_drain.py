"""The end of a job worker: who is told what, and when."""

from collections.abc import Callable
from uuid import UUID

import pytest

from audit import clock
from jobworker import drain as draining
from jobworker.attempt import Attempt
from jobworker.drain import drain

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
    given_up: list[UUID] = []

    def running() -> list[Attempt]:
        if reacts.context.stopping.is_set():
            told.append(passing[0])
            return [deaf]
        return [deaf, reacts]

    left = drain(running, seconds=20, give_up=given_up.extend)
    assert left == 1
    assert given_up == [deaf.claimed.claim_id]
    assert told[0] == pytest.approx(12, abs=0.2)
    assert (deaf.context.reason, deaf.context.kill_at) == ("drain", pytest.approx(21))
    assert passing[0] <= 20 + 2


def test_a_worker_with_nothing_in_hand_ends_at_once(passing: list[float]) -> None:
    def refuse(_: list[UUID]) -> None:
        raise AssertionError("there is nothing to give up")

    assert drain(list, seconds=20, give_up=refuse) == 0
    assert passing[0] == 0


def test_a_drain_shorter_than_the_interruption_interrupts_at_once(
    attempt: Make, passing: list[float]
) -> None:
    one = attempt()
    drain(lambda: [one], seconds=3, give_up=lambda _: None)
    assert one.context.reason == "drain"
    assert passing[0] <= 3 + 2
