"""What a job is given while it runs."""

import threading
from collections.abc import Callable

import pytest

from audit import clock
from jobworker.attempt import Attempt
from jobworker.exceptions import Stopped
from tests.waiting import wait_until

Make = Callable[..., Attempt]


def asleep(
    attempt: Attempt, seconds: float = 3600
) -> tuple[threading.Thread, list[str]]:
    """A thread that sleeps in the job's context, and what came of it."""
    ended: list[str] = []

    def sleep() -> None:
        try:
            attempt.context.sleep(seconds)
            ended.append("woke up")
        except Stopped as stopped:
            ended.append(str(stopped))

    thread = threading.Thread(target=sleep)
    thread.start()
    weight = attempt.context._weight
    wait_until(lambda: weight.awake == 0 or bool(ended), within=5, what="it sleeps")
    return thread, ended


def test_a_sleep_ends_after_its_time(attempt: Make) -> None:
    thread, ended = asleep(attempt(), 0.01)
    thread.join(5)
    assert ended == ["woke up"]


def test_a_cancel_wakes_a_sleeper_and_says_so(attempt: Make) -> None:
    one = attempt()
    thread, ended = asleep(one)
    one.context.stop("cancel")
    thread.join(5)
    assert ended == ["cancelled"]
    with pytest.raises(Stopped):
        one.context.sleep(0)
    with pytest.raises(Stopped):
        one.context.check_cancel()


def test_a_drain_lets_a_sleeper_look_once_more_and_only_once(attempt: Make) -> None:
    one = attempt()
    thread, ended = asleep(one)
    one.context.drain()
    thread.join(5)
    assert ended == ["woke up"]
    thread, ended = asleep(one)
    assert ended == []
    one.context.stop("drain")
    thread.join(5)
    assert "stopped" in ended[0]


def test_the_first_reason_stays_and_the_earlier_kill_counts(attempt: Make) -> None:
    context = attempt().context
    context.stop("cancel")
    context.stop("drain", kill_at=5.0)
    context.stop("drain", kill_at=9.0)
    assert (context.reason, context.kill_at) == ("cancel", 5.0)


def test_progress_never_falls_and_stays_within_bounds(attempt: Make) -> None:
    context = attempt().context
    for percent in (10, 5, 300, -3):
        context.progress(percent)
    assert context.sign.progress == 100


def test_phases_are_kept_in_their_order_and_bounded(attempt: Make) -> None:
    context = attempt().context
    for number in range(300):
        context.phase(f"phase {number}")
        context.phase(f"phase {number}")
    names = [each["name"] for each in context.sign.phases]
    assert names[:2] == ["phase 0", "phase 1"]
    assert len(names) == 100
    assert names[-1] == "phase 299"


def test_a_reference_and_a_result_are_committed_at_once(attempt: Make) -> None:
    one = attempt()
    one.context.save_ref({"task": "t-1"})
    one.context.save_result({"a": 1})
    one.context.save_result({"b": 2})
    one.job.refresh_from_db()
    assert one.job.external_ref == {"task": "t-1"}
    assert one.job.result == {"a": 1, "b": 2}
    assert one.context.deadline > clock.now()
