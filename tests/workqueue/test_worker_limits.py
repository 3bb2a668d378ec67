"""What the worker's loop owes to time limits, stuck threads, settings and a stop, whatever else it does."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from audit import clock
from audit.models import LateResult, Run
from tests.processes import Process
from tests.waiting import wait_until
from tests.workqueue.running import enqueue, runs
from workqueue import connections, policy
from workqueue import worker as worker_module
from workqueue.claim import Demand, Marks
from workqueue.live import Live
from workqueue.models import Node, Tenant
from workqueue.worker import EXIT_STUCK, LOOK, Worker

pytestmark = pytest.mark.race


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker of which only the slots are there, and those are none."""
    monkeypatch.setattr(connections, "resize", lambda wanted: None)
    one = Worker()
    one._live, one._marks, one._more = Live(), Marks(), set()
    one._alone = one._waiting_suspect_since = None
    one.me, one.beat = Mock(), Mock()
    one.slots = Mock(stuck={}, offered=2, waiting={}, running={})
    one.slots.over_time.return_value = one.slots.take_back.return_value = []  # type: ignore[attr-defined]
    return one


@pytest.mark.usefixtures("timetable")
@pytest.mark.parametrize("stops", [True, False])
def test_a_worker_whose_slots_fall_free_as_fast_as_it_claims_sees_to_other_things_too(
    idle: Worker, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    """To a stop at once; to settings, pauses and time limits twice a second."""
    now = [1000.0]
    monkeypatch.setattr(clock, "steady", lambda: now[0])

    def claim(*_: Any, **__: Any) -> list[Any]:
        now[0] += 0.01
        assert now[0] < 1001, "it claims on"
        if stops:
            idle.stop()
        return [SimpleNamespace(handler="act", claim_id=None)]

    monkeypatch.setattr(worker_module, "claim", claim)
    idle._demand = lambda keys: Demand(slow={"act": 1}, slow_total=1, fast={})  # type: ignore[method-assign]
    idle._claim()
    assert now[0] == pytest.approx(1000.01 if stops else 1000.5, abs=0.02)
    assert idle._woken.is_set()
    assert "act" in idle._more


def test_an_attempt_over_its_time_limit_is_failed_and_others_go_on(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    enqueue(acme, "hang:0", handler="act_limited", time_limit_s=1)
    enqueue(acme, "log:1")
    worker()
    found = runs(2)
    assert {run.handler: run.outcome for run in found} == {
        "act": "succeeded",
        "act_limited": "failed",
    }
    assert Run.objects.get(outcome="failed").error.startswith("time limit of 1 s")
    wait_until(
        lambda: LateResult.objects.exists(),
        within=10,
        what="ClaimLost at its next query",
    )


@pytest.mark.postgresql
def test_the_slot_of_a_stuck_run_comes_back_when_its_thread_does(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    enqueue(acme, "sleep:4", handler="act_limited", time_limit_s=1)
    worker()

    def told() -> dict[str, Any]:
        return Node.objects.get().report.get("slots", {})

    wait_until(lambda: told().get("used") == 9, within=15, what="nine slots")
    assert told()["why"] == "1 of its threads are stuck in runs over their time limit."
    wait_until(lambda: told()["used"] == 10, within=15, what="ten slots")
    assert told()["why"] == ""


@pytest.mark.parametrize(
    ("asked", "serves", "stuck", "offered"),
    [
        (10, None, 3, 10),  # no pool, nothing is clamped
        (10, 20, 3, 10),  # the pool has enough for both
        (10, 12, 3, 9),
        (10, 10, 3, 7),
        (10, 8, 0, 8),
        (2, 2, 5, 1),
    ],
)
def test_stuck_threads_take_slots_where_the_pool_has_no_connections_for_both(
    idle: Worker,
    monkeypatch: pytest.MonkeyPatch,
    asked: int,
    serves: int | None,
    stuck: int,
    offered: int,
) -> None:
    monkeypatch.setattr(connections, "serves_items", lambda: serves)
    idle._live = Live(policy=policy.resolve({"WORKER_CONCURRENCY": asked})[0])
    idle.slots.stuck = dict.fromkeys(range(stuck))  # type: ignore[assignment]
    idle._apply()
    idle.slots.resize.assert_called_once_with(offered)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("since", "code"), [(LOOK - 1, 0), (LOOK + 1, EXIT_STUCK)])
def test_a_worker_ends_for_more_stuck_threads_than_slots_once_they_stay_stuck(
    idle: Worker, since: float, code: int
) -> None:
    """Most meet the closed door at their next query, a moment after their limit."""
    one: Any = SimpleNamespace(deadline=clock.steady() - since)
    idle.slots.stuck = dict.fromkeys(range(3), one)  # type: ignore[arg-type]
    idle._watch()
    assert idle.exit_code == code
    assert idle.stopping.is_set() == bool(code)
