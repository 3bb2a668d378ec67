"""The worker as a process: claims, runs, drains, survives what handlers and people do."""

import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from audit import clock
from audit.models import LateResult, Line, NodeEvent, Run
from tests import factories
from tests.processes import Process
from tests.waiting import wait_until
from tests.workqueue.running import KEEP_ALIVE, enqueue, runs
from workqueue import policy
from workqueue.models import Node, Tenant, WorkItem

pytestmark = pytest.mark.race


def set_policy(**values: Any) -> None:
    policy.save(values, who="test", origin="command", why="")


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
    started = Node.objects.exclude(pk=other.pk).get().started_at
    assert run.outcome == "abandoned"
    assert run.finished_at - started >= KEEP_ALIVE


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
