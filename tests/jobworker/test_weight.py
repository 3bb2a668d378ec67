"""Weight: who is awake, who sleeps, and who waits to wake up."""

import threading
from uuid import UUID

import pytest

from jobworker.weight import Weight
from tests.waiting import wait_until

pytestmark = pytest.mark.once
ME = UUID(int=1)


def test_a_sleeper_has_no_weight_and_wakes_up_only_when_there_is_some() -> None:
    weight, sleep, awake = Weight(), threading.Event(), threading.Event()
    weight.allow(1)
    weight.take()

    def job() -> None:
        with weight.set_down(ME, lambda: False):
            sleep.wait(10)
        awake.set()

    thread = threading.Thread(target=job)
    thread.start()
    wait_until(lambda: weight.taken() == 0, within=5, what="weight is free")
    weight.take()  # another job is claimed into it
    sleep.set()
    wait_until(lambda: weight.waking == [ME], within=5, what="it wants to wake up")
    assert not awake.is_set()
    assert weight.taken() == 2
    weight.put()
    assert awake.wait(5)
    assert (weight.awake, weight.waking) == (1, [])
    thread.join(5)


def test_who_wakes_up_comes_before_who_is_claimed_anew() -> None:
    weight = Weight()
    weight.allow(2)
    weight.waking = [ME]
    assert weight.taken() == 1


def test_who_is_to_stop_does_not_wait_for_weight() -> None:
    weight = Weight()
    weight.allow(1)
    weight.take()
    weight.take()
    with weight.set_down(ME, lambda: True):
        pass
    assert weight.awake == 2


def test_who_sleeps_wakes_up_though_the_pool_serves_nobody_any_more() -> None:
    weight, awake = Weight(), threading.Event()
    weight.allow(1)
    weight.take()
    weight.allow(0)

    def job() -> None:
        with weight.set_down(ME, lambda: False):
            pass
        awake.set()

    threading.Thread(target=job, daemon=True).start()
    assert awake.wait(5)
