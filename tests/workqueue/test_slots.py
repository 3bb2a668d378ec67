"""The slots of a worker."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connections

from tests.waiting import wait_until
from workqueue.attempt import Attempt, Finished
from workqueue.slots import ENOUGH, Slots, failed_by_limit

Make = Callable[..., Attempt]


class Bench:
    """Slots with a list for what they finish, and a gate."""

    def __init__(self) -> None:
        self.done: list[Finished] = []
        self.open = threading.Event()
        self.open.set()
        self.stopping = threading.Event()
        self.slots = Slots(
            done=self.done.append, ready=self.open.is_set, stopping=self.stopping.is_set
        )


@pytest.fixture
def bench(transactional_db: None) -> Iterator[Bench]:
    one = Bench()
    yield one
    one.stopping.set()
    one.slots.resize(0)
    wait_until(
        lambda: not [t for t in threading.enumerate() if t.name == "slot"],
        within=10,
        what="the end of the slots",
    )
    connections.close_all()


def test_every_slot_runs_one_item_at_a_time(bench: Bench, attempt: Make) -> None:
    bench.slots.resize(2)
    bench.slots.add([attempt(f"sleep:0.2+log:{n}") for n in range(1, 5)])
    wait_until(lambda: len(bench.slots.running) == 2, within=5, what="two running")
    assert len(bench.slots.waiting) == 2
    wait_until(lambda: len(bench.done) == 4, within=10, what="all four done")
    assert bench.slots.in_hand() == 0


def test_nothing_starts_while_the_process_is_not_ready(
    bench: Bench, attempt: Make
) -> None:
    bench.open.clear()
    bench.slots.resize(1)
    bench.slots.add([attempt()])
    time.sleep(0.3)  # the one way to see that nothing happens
    assert not bench.done
    bench.open.set()
    wait_until(lambda: len(bench.done) == 1, within=5, what="the run")


def test_what_was_claimed_into_a_free_slot_goes_before_what_was_claimed_ahead(
    bench: Bench, attempt: Make
) -> None:
    ahead, urgent = attempt("1" and "log:1"), attempt("log:2")
    ahead.prefetched = True
    bench.slots.add([ahead, urgent])
    bench.slots.resize(1)
    wait_until(lambda: len(bench.done) == 2, within=5, what="both")
    assert [f.attempt for f in bench.done] == [urgent, ahead]


def test_what_is_taken_back_is_never_run(bench: Bench, attempt: Make) -> None:
    old, fresh = attempt("log:1"), attempt("log:2")
    old.taken_at -= 10
    bench.slots.add([old, fresh])
    assert bench.slots.take_back(claimed_before=old.taken_at + 1) == [old]
    bench.slots.resize(1)
    wait_until(lambda: len(bench.done) == 1, within=5, what="the other")
    assert bench.done[0].attempt is fresh


def test_a_run_over_its_limit_is_failed_with_its_stack_and_its_slot_is_replaced(
    bench: Bench, attempt: Make
) -> None:
    bench.slots.resize(1)
    stuck = attempt("hang", handler="act_limited", time_limit_s=1)
    bench.slots.add([stuck])
    wait_until(lambda: bench.slots.running, within=5, what="its start")
    wait_until(lambda: bench.slots.next_deadline() <= 0, within=5, what="its limit")
    assert bench.slots.over_time() == [stuck]
    bench.done.append(finished := failed_by_limit(stuck))
    stuck.settled = True
    assert finished.word == "failed"
    assert finished.error.startswith("time limit of 1 s reached")
    closed = stuck.transcript.close()
    assert "_hang" in closed.short + "".join(line.text for line in closed.rest)
    bench.slots.resize(1)
    bench.slots.add([attempt("log:1")])
    wait_until(
        lambda: len(bench.done) == 3,
        within=5,
        what="the next run, and the late end of the stuck one",
    )
    assert not bench.slots.stuck
    words = {f.error.partition(":")[0]: f.word for f in bench.done[1:]}
    assert words == {"ClaimLost": "failed", "": "succeeded"}  # at its next query


@pytest.mark.parametrize("how", ["over_time", "take_over"])
def test_the_thread_of_what_was_taken_out_has_no_word_before_who_took_it(
    bench: Bench, attempt: Make, how: str
) -> None:
    bench.slots.resize(1)
    one = attempt("hang", handler="act_limited", time_limit_s=1)
    bench.slots.add([one])
    wait_until(lambda: bench.slots.running, within=5, what="its start")
    wait_until(lambda: bench.slots.next_deadline() <= 0, within=5, what="its limit")
    assert getattr(bench.slots, how)() == [one]
    time.sleep(0.3)  # the one way to see that nothing happens; it asks every 0.02 s
    assert not bench.done
    one.settled = True
    wait_until(lambda: bench.done, within=5, what="its result")
    assert bench.done[0].error.startswith("ClaimLost")


def test_a_median_needs_some_runs_first(bench: Bench, attempt: Make) -> None:
    bench.slots.resize(1)
    bench.slots.add([attempt(f"log:{n}") for n in range(1, ENOUGH)])
    wait_until(lambda: len(bench.done) == ENOUGH - 1, within=5, what="some runs")
    assert bench.slots.median("act") is None
    bench.slots.add([attempt("log:99")])
    wait_until(lambda: len(bench.done) == ENOUGH, within=5, what="one more")
    assert bench.slots.median("act") is not None


def test_fewer_slots_end_threads_and_more_start_them(bench: Bench) -> None:
    count = lambda: len([t for t in threading.enumerate() if t.name == "slot"])  # noqa: E731
    bench.slots.resize(5)
    assert count() == 5
    bench.slots.resize(2)
    wait_until(lambda: count() == 2, within=5, what="three threads to end")
