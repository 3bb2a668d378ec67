"""The shared skeleton of a process."""

import threading
import time

import pytest
from django.db import OperationalError

from tests.waiting import wait_until
from workqueue import schema
from workqueue.loop import Loop


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema is there."""
    monkeypatch.setattr(schema, "wait", lambda *, stop: True)


class Counting(Loop):
    """Notes its passes."""

    name = "counting"

    def __init__(self, problem: Exception | None = None, delay: float = 3600) -> None:
        super().__init__()
        self.passes: list[float] = []
        self.drained = False
        self.problem, self.delay = problem, delay

    def poll(self) -> float:
        self.passes.append(time.monotonic())
        if self.problem and len(self.passes) == 1:
            raise self.problem
        return self.delay

    def drain(self) -> None:
        self.drained = True


def in_thread(loop: Loop) -> threading.Thread:
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    return thread


def test_a_loop_sleeps_until_it_is_woken_and_drains_when_it_is_stopped() -> None:
    loop = Counting()
    thread = in_thread(loop)
    wait_until(lambda: len(loop.passes) == 1, within=5, what="the first pass")
    loop.wake()
    wait_until(lambda: len(loop.passes) == 2, within=5, what="the second pass")
    loop.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert loop.drained


def test_a_pass_that_fails_is_tried_again_after_about_a_second() -> None:
    for problem in (OperationalError("gone"), ValueError("odd")):
        loop = Counting(problem)
        thread = in_thread(loop)
        wait_until(
            lambda loop=loop: len(loop.passes) == 2, within=5, what="another pass"
        )
        assert loop.passes[1] - loop.passes[0] >= 0.9  # at most one attempt a second
        loop.stop()
        thread.join(5)


def test_absurd_delays_are_no_error() -> None:
    for delay in (1e18, float("inf"), -5.0):
        loop = Counting(delay=delay)
        thread = in_thread(loop)
        wait_until(lambda loop=loop: bool(loop.passes), within=5, what="a pass")
        loop.stop()
        thread.join(5)
        assert not thread.is_alive()


def test_the_exit_code_of_the_first_stop_counts() -> None:
    loop = Counting()
    loop.stop(exit_code=75)
    loop.stop()
    assert loop.run() == 75
