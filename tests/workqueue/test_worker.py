"""The worker as a process: claims, runs, drains, survives what handlers and people do."""

import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from audit import clock
from audit.models import LateResult, Line, NodeEvent, Run
from tests import factories
from tests.processes import Process
from tests.waiting import wait_until
from workqueue import connections, policy
from workqueue import worker as worker_module
from workqueue.claim import Demand, Marks
from workqueue.live import Live
from workqueue.models import Node, Tenant, WorkItem
from workqueue.worker import EXIT_STUCK, LOOK, Worker

pytestmark = pytest.mark.race
Spawn = Callable[..., Process]
KEEP_ALIVE = {"FALCON_SERVER_KEEP_ALIVE_SECONDS": "2"}


@pytest.fixture
def worker(spawn: Spawn) -> Callable[..., Process]:
    """Start a worker on the tests' timetable, and wait until it has registered."""

    def start(**env: str) -> Process:
        process = spawn(
            "runworker",
            env={
                "DJANGO_SETTINGS_MODULE": "tests.engine_settings",
                **KEEP_ALIVE,
                **env,
            },
        )
        process.says("worker started")
        return process

    return start


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


def enqueue(
    tenant: Tenant, does: str = "", handler: str = "act", **values: Any
) -> WorkItem:
    return factories.item(
        tenant,
        handler,
        dedup_key=does,
        tenant_slug=tenant.slug,
        trigger="call",
        **values,
    )


def set_policy(**values: Any) -> None:
    policy.save(values, who="test", origin="command", why="")


def runs(count: int, within: float = 20) -> list[Run]:
    wait_until(
        lambda: Run.objects.count() >= count, within=within, what=f"{count} runs"
    )
    return list(Run.objects.order_by("finished_at"))


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What an item touches that has begun: claimed ahead, it may not have."""
    return tmp_path / "mark"


def executing(mark: Path, within: float = 20) -> WorkItem:
    wait_until(mark.exists, within=within, what="an item that has begun")
    return WorkItem.objects.filter(status="executing").first()  # type: ignore[return-value]


def test_work_is_run_and_recorded_and_the_worker_goes_in_order(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    for n in range(1, 41):
        enqueue(acme, f"log:{n}")
    process = worker()
    found = runs(40)
    assert {run.outcome for run in found} == {"succeeded"}
    assert {run.node_id for run in found} == {Node.objects.get().id}
    process.terminate()
    assert process.wait() == 0
    assert Node.objects.get().status == "stopped"
    assert NodeEvent.objects.filter(type="stopped").exists()
    assert "Traceback" not in process.log


def test_whatever_handlers_raise_the_worker_lives(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    for name in (
        "SystemExit",
        "KeyboardInterrupt",
        "GeneratorExit",
        "Unprintable",
        "Nul",
        "Group",
    ):
        enqueue(acme, f"raise:{name}")
    enqueue(acme, "log:1")
    process = worker()
    found = runs(7)
    assert sorted(run.outcome for run in found) == ["failed"] * 6 + ["succeeded"]
    assert process.popen.poll() is None


def test_unknown_handlers_are_left_alone(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    for n in range(3):
        enqueue(
            acme,
            str(n),
            handler="retired.handler",
            not_before=clock.now() - timedelta(hours=1),
        )
    enqueue(acme)
    worker()
    assert [run.handler for run in runs(1)] == ["act"]
    assert WorkItem.objects.filter(status="pending", attempts=0).count() == 3


def test_a_stop_hands_back_what_waits_and_finishes_what_runs(
    acme: Tenant, worker: Callable[..., Process], mark: Path
) -> None:
    set_policy(WORKER_CONCURRENCY=1)
    enqueue(acme, f"touch:{mark}+sleep:1")
    process = worker()
    executing(mark)
    enqueue(acme, "log:1")
    process.terminate()
    assert process.wait(within=20) == 0
    assert [run.outcome for run in Run.objects.all()] == ["succeeded"]
    item = WorkItem.objects.get()
    assert (item.status, item.attempts, item.claim_id) == ("pending", 0, None)


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


def test_what_does_not_end_within_the_drain_is_given_up_and_runs_elsewhere(
    acme: Tenant, worker: Callable[..., Process], mark: Path
) -> None:
    enqueue(acme, f"log:3+touch:{mark}+sleep:60")
    process = worker(WORKER_DRAIN_TIMEOUT_S="1")
    executing(mark)
    began = time.monotonic()
    process.terminate()
    assert process.wait(within=10) == 0
    assert time.monotonic() - began < 1 + 2
    [run] = runs(1)
    assert run.outcome == "abandoned"
    assert "WORKER_DRAIN_TIMEOUT_S (1 s)" in run.error
    assert Line.objects.filter(claim_id=run.id).count() == 3
    item = WorkItem.objects.get()
    assert (item.status, item.recoveries) == ("pending", 0)


def test_a_second_sigterm_ends_at_once(
    acme: Tenant, worker: Callable[..., Process], mark: Path
) -> None:
    enqueue(acme, f"touch:{mark}+sleep:60")
    process = worker()
    executing(mark)
    process.terminate()
    wait_until(
        lambda: Node.objects.get().status == "draining", within=10, what="the drain"
    )
    process.terminate()
    assert process.wait(within=3) == 128 + signal.SIGTERM


def test_sigusr1_dumps_the_stacks(acme: Tenant, worker: Callable[..., Process]) -> None:
    process = worker()
    process.send(signal.SIGUSR1)
    process.says("Current thread")
    assert process.popen.poll() is None


def test_what_a_killed_worker_held_runs_again_on_another(
    acme: Tenant, worker: Callable[..., Process], mark: Path
) -> None:
    enqueue(acme, f"touch:{mark}+sleep:3")
    first = worker()
    held = executing(mark)
    first.kill()
    worker()
    found = runs(2, within=40)
    assert [run.outcome for run in found] == ["abandoned", "succeeded"]
    assert found[0].id == held.claim_id
    assert found[1].attempt == 2
    assert mark.read_text() == ".."  # at least once
    assert not WorkItem.objects.exists()
    wait_until(
        lambda: NodeEvent.objects.filter(type="silent").exists(),
        within=5,
        what="its node's last entry",
    )


def test_a_worker_that_has_just_started_leaves_claims_alone_that_nobody_could_renew(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    """After a long outage all claims look abandoned until their holders have beaten again."""
    set_policy(WORKER_RECLAIM_INTERVAL_MS=1000)
    now = clock.now()
    other = factories.node(heartbeat_at=now + timedelta(hours=1))  # it lives
    old = now - timedelta(seconds=700)
    enqueue(acme, status="executing", node_id=other.id, renewed_at=old)
    worker()
    [run, _] = runs(2)  # once it may judge
    keep_alive = timedelta(seconds=int(KEEP_ALIVE["FALCON_SERVER_KEEP_ALIVE_SECONDS"]))
    started = Node.objects.exclude(pk=other.pk).get().started_at
    assert run.outcome == "abandoned"
    assert run.finished_at - started >= keep_alive


def test_a_frozen_worker_cannot_close_the_item_of_its_successor(
    acme: Tenant, worker: Callable[..., Process], mark: Path
) -> None:
    enqueue(acme, f"touch:{mark}+sleep:2")
    first = worker()
    held = executing(mark)
    first.freeze()
    worker()
    found = runs(2, within=40)
    assert [run.outcome for run in found] == ["abandoned", "succeeded"]
    first.thaw()
    wait_until(lambda: LateResult.objects.exists(), within=20, what="the late result")
    assert LateResult.objects.get().claim_id == held.claim_id
    assert Run.objects.count() == 2
    wait_until(
        lambda: Node.objects.filter(status="running").count() == 2,
        within=15,
        what="its return",
    )


def test_an_item_that_kills_its_workers_is_held_and_the_innocent_ones_succeed(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    enqueue(acme, "die", not_before=clock.now() - timedelta(hours=1))
    for n in range(1, 21):
        enqueue(acme, f"log:{n}")
    deaths = 0
    process = worker()
    deadline = time.monotonic() + 90
    while WorkItem.objects.exclude(status="held").exists():
        assert time.monotonic() < deadline, list(
            WorkItem.objects.values_list("dedup_key", "status", "recoveries")
        )
        if process.popen.poll() is not None:
            deaths += 1
            process = worker()
        time.sleep(0.1)
    held = WorkItem.objects.get()
    assert (held.dedup_key, held.recoveries) == ("die", 3)
    assert deaths == 3
    assert Run.objects.filter(outcome="succeeded").count() == 20
    assert Run.objects.filter(dedup_key="die", outcome="failed").count() == 1


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


def test_settings_are_applied_without_a_restart(
    acme: Tenant, worker: Callable[..., Process]
) -> None:
    worker()
    set_policy(WORKER_CONCURRENCY=3)
    wait_until(
        lambda: Node.objects.get().report.get("slots", {}).get("used") == 3,
        within=15,
        what="three slots",
    )
    set_policy(START_WORKERS_ON_MASTER=False)
    wait_until(
        lambda: "off" in Node.objects.get().report.get("loop", ""),
        within=15,
        what="the stop of the loop",
    )
    enqueue(acme)
    time.sleep(1)  # the one way to see that nothing happens
    assert WorkItem.objects.get().status == "pending"
    set_policy(START_WORKERS_ON_MASTER=True)
    runs(1, within=15)


def test_a_cancelled_run_is_closed_at_its_next_query(
    acme: Tenant, worker: Callable[..., Process], mark: Path
) -> None:
    from workqueue import operate

    enqueue(acme, f"touch:{mark}+hang")
    worker()
    item = executing(mark)
    operate.cancel([item.pk], who="olga", origin="admin", why="CHG-1", tenants=None)
    wait_until(lambda: LateResult.objects.exists(), within=15, what="its end")
    assert Run.objects.get().outcome == "cancelled"
    assert "ClaimLost" in LateResult.objects.get().error


def test_a_long_run_can_be_followed_while_it_runs(
    acme: Tenant, worker: Callable[..., Process], mark: Path
) -> None:
    from audit import queries

    enqueue(acme, f"touch:{mark}+log:5+progress:40+sleep:4+log:3")
    worker()
    item = executing(mark)
    assert item.claim_id
    wait_until(
        lambda: len(queries.lines(item.claim_id, after=0, limit=99)) == 5,
        within=6,
        what="its first lines",
    )  # type: ignore[arg-type]
    wait_until(
        lambda: WorkItem.objects.get().progress == {"percent": 40},
        within=3,
        what="its progress",
    )
    [run] = runs(1)
    assert run.line_count == 8
    assert [line.seq for line in queries.lines(run.id, after=0, limit=99)] == list(
        range(1, 9)
    )
