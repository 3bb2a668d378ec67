"""How many items of which handlers a worker asks for."""

from collections import Counter
from typing import Any

import pytest

from workqueue.demand import PREFETCH, demand_of

KEYS = ["act", "act_fail", "act_retry"]
pytestmark = pytest.mark.usefixtures("timetable")


class Hand:
    """What is in hand, as the slots would say it."""

    def __init__(
        self, offered: int, in_hand: dict[str, int], medians: dict[str, float]
    ) -> None:
        self.offered, self._in_hand, self._medians = offered, Counter(in_hand), medians

    def by_handler(self) -> Counter[str]:
        return self._in_hand

    def median(self, handler: str) -> float | None:
        return self._medians.get(handler)


def ask(
    offered: int = 10, in_hand: Any = None, medians: Any = None, with_work: Any = ()
) -> Any:
    slots: Any = Hand(offered, in_hand or {}, medians or {})
    return demand_of(KEYS, slots=slots, with_work=set(with_work), paused_tenants=[])


def test_an_idle_worker_asks_every_handler_for_all_free_slots_together() -> None:
    demand = ask()
    assert demand.slow_total == 10
    assert set(demand.slow) == set(KEYS)


def test_the_handler_with_fewest_running_is_served_first() -> None:
    demand = ask(in_hand={"act": 4, "act_fail": 1})
    assert list(demand.slow) == ["act_retry", "act_fail", "act"]
    assert demand.slow_total == 5


def test_free_slots_are_shared_among_handlers_that_have_work() -> None:
    assert ask(with_work=["act", "act_fail"]).slow["act"] == 5


def test_no_free_slot_no_claim() -> None:
    assert not ask(offered=3, in_hand={"act": 3}).asks()


def test_short_runs_are_claimed_ahead_but_no_more_than_a_second_of_work() -> None:
    assert ask(medians={"act": 0.0001}).fast == {"act": PREFETCH}
    assert ask(medians={"act": 0.04}).fast == {"act": 10 / 0.04}
    assert ask(offered=2, medians={"act": 0.04}).fast == {"act": 50}
    assert ask(medians={"act": 0.06}).fast == {}


def test_what_is_already_claimed_ahead_counts() -> None:
    assert ask(in_hand={"act": 50}, medians={"act": 0.0001}).fast == {
        "act": PREFETCH - 50
    }


def test_rows_that_start_at_most_once_are_never_claimed_ahead() -> None:
    demand = ask(medians={"act_fail": 0.0001})
    assert "act_fail" in demand.slow
    assert demand.fast == {}


def test_fast_items_in_hand_do_not_keep_slow_ones_from_a_slot() -> None:
    assert ask(in_hand={"act": 100}, medians={"act": 0.001}).slow_total == 10


def test_nothing_is_claimed_ahead_before_half_of_it_is_used_up() -> None:
    assert ask(in_hand={"act": PREFETCH - 50}, medians={"act": 0.0001}).fast == {}
