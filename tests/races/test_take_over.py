"""Real schedulers, killed, frozen and stopped: one master, in time, and no slot twice.

At a keep-alive of 2 s. On SQLite no process is frozen inside a transaction: it would
block all writers there, as the documents say.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from audit import clock
from audit.models import NodeEvent
from scheduler.look import Lease, look
from scheduler.models import BootstrapStep, MasterLease, Tick
from tests import factories
from tests.processes import Process
from tests.waiting import wait_until
from workqueue.models import Node

pytestmark = pytest.mark.race

KEEP_ALIVE = 2.0  # seconds
SLACK = 1.0  # seconds that a busy machine may take besides
postgresql = pytest.mark.postgresql

type Start = Callable[[int], list[Process]]


@pytest.fixture
def start(spawn: Callable[..., Process], tmp_path: Path) -> Start:
    """Start so many schedulers with the tests' timetable; one of them is master."""
    env = {
        "DJANGO_SETTINGS_MODULE": "tests.scheduler.process_settings",
        "FALCON_SERVER_KEEP_ALIVE_SECONDS": "2",
        "GATE": str(tmp_path / "gate"),
    }

    def start(count: int) -> list[Process]:
        processes = [spawn("runscheduler", env=env) for _ in range(count)]
        for process in processes:
            process.says("scheduler started", within=60)
        master_of(processes)
        return processes

    return start


@pytest.fixture
def tenants(transactional_db: None) -> None:
    for n in range(5):
        factories.tenant(f"busy-{n}", name=f"Busy {n}")


def lease() -> Lease:
    return look().lease


def master_of(processes: list[Process]) -> Process:
    """The process that holds the lease."""
    pids = {process.pid: process for process in processes}
    holder = wait_until(
        lambda: lease() if not lease().free else None, within=10, what="a master"
    )
    return pids[Node.objects.get(id=holder.holder).pid]


def next_term(after: int, *, within: float) -> Lease:
    def taken() -> Lease | None:
        found = lease()
        return found if found.term > after and not found.free else None

    return wait_until(taken, within=within + 10, what=f"a term after {after}")


def seconds(begin: datetime, end: datetime | None) -> float:
    assert end is not None
    return (end - begin).total_seconds()


def ticks_after(moment: datetime, *, count: int = 2) -> list[Tick]:
    return wait_until(
        lambda: (
            rows
            if len(rows := list(Tick.objects.filter(at__gt=moment, handler="plain")))
            >= count
            else None
        ),
        within=20,
        what="ticks of the new term",
    )


@pytest.fixture
def sound(transactional_db: None) -> Iterator[None]:
    """Afterwards: a slot is ticked once, and each term ticks only in its own time."""
    yield
    slots = Counter(Tick.objects.values_list("handler", "trigger", "slot"))
    assert [slot for slot, count in slots.items() if count > 1] == []
    begun = dict(NodeEvent.objects.filter(type="elected").values_list("term", "at"))
    assert sorted(begun) == list(range(1, max(begun, default=0) + 1))
    for term, at in Tick.objects.values_list("term", "at"):
        assert begun[term] <= at
        assert term + 1 not in begun or at <= begun[term + 1], (
            f"term {term} ticked after its end"
        )


def test_a_killed_master_is_followed_within_keep_alive_and_two_seconds(
    start: Start, tenants: None, sound: None
) -> None:
    processes = start(2)
    before = lease().term
    ticks_after(clock.now())
    killed = look().now
    master_of(processes).kill()
    taken = next_term(before, within=KEEP_ALIVE + 2)
    assert seconds(killed, taken.since) <= KEEP_ALIVE + 2 + SLACK
    ticks_after(taken.since or killed)


def test_a_stopped_master_is_followed_within_two_seconds(
    start: Start, tenants: None, sound: None
) -> None:
    processes = start(2)
    before = lease().term
    first = master_of(processes)
    asked = look().now
    first.terminate()
    taken = next_term(before, within=2)
    assert first.wait() == 0
    assert seconds(asked, taken.since) <= 2 + SLACK
    types = set(
        NodeEvent.objects.filter(node__endswith=f", {first.pid}").values_list(
            "type", flat=True
        )
    )
    assert {"elected", "resigned", "stopped"} <= types
    ticks_after(taken.since or asked)


def test_a_master_frozen_between_its_transactions_is_fenced_when_it_wakes(
    start: Start, tenants: None, sound: None
) -> None:
    processes = start(2)
    before = lease().term
    first = master_of(processes)
    freeze_outside_transactions(first)
    frozen = look().now
    taken = next_term(before, within=KEEP_ALIVE + 2)
    assert seconds(frozen, taken.since) <= KEEP_ALIVE + 2 + SLACK
    ticks_after(taken.since or frozen)
    first.thaw()
    first.says("lost the lease", within=20)
    ticks_after(look().now)


@postgresql
def test_a_master_frozen_inside_a_tick_is_followed_within_keep_alive_and_six_seconds(
    start: Start, tenants: None, sound: None, tmp_path: Path
) -> None:
    processes = start(2)
    before = lease().term
    first = master_of(processes)
    gate = tmp_path / "gate"
    gate.touch()
    wait_until(idle_in_transaction, what="a tick that stands in its probe")
    first.freeze()
    frozen = look().now
    taken = next_term(before, within=KEEP_ALIVE + 6)
    gate.unlink()
    assert seconds(frozen, taken.since) <= KEEP_ALIVE + 6 + SLACK
    ticks_after(taken.since or frozen)
    first.thaw()
    wait_until(
        lambda: NodeEvent.objects.filter(type="deposed", term=before).exists(),
        within=20,
        what="the old master's own word that its term is over",
    )
    ticks_after(look().now)


def freeze_outside_transactions(process: Process) -> None:
    """SIGSTOP, and again until it happens to stand between two transactions."""

    def frozen_well() -> bool:
        process.freeze()
        inside = (
            idle_in_transaction() if connection.vendor == "postgresql" else locked()
        )
        if inside:
            process.thaw()
        return not inside

    wait_until(frozen_well, what="a moment between two transactions", every=0.1)


def idle_in_transaction() -> bool:
    """Whether a session of a scheduler stands inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
            " AND datname = current_database() AND application_name LIKE 'millrace%'"
        )
        return bool(cursor.fetchone()[0])


def locked() -> bool:
    """Whether somebody has SQLite's file to himself, and keeps it."""
    session = sqlite3.connect(
        connection.settings_dict["NAME"], timeout=0.5, isolation_level=None
    )
    try:
        session.execute("BEGIN IMMEDIATE")
        session.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    finally:
        session.close()
    return False


def test_three_schedulers_with_one_host_name_tick_every_slot_once(
    start: Start, tenants: None, sound: None
) -> None:
    processes = start(3)
    samples: list[tuple[Any, ...]] = []
    began = Tick.objects.filter(handler="probed").count()

    def enough() -> bool:
        found = lease()
        samples.append((found.term, found.holder))
        return Tick.objects.filter(handler="probed").count() >= began + 6

    wait_until(enough, within=40, what="six ticks", every=0.2)
    assert {holder for _, holder in samples} == {lease().holder}
    assert Node.objects.filter(kind="server").count() == 3
    assert len(set(Node.objects.values_list("host", flat=True))) == 1
    slots = list(
        Tick.objects.filter(handler="probed")
        .order_by("slot")
        .values_list("slot", "missed")
    )
    covered = sum(1 + missed for _, missed in slots)
    assert (
        covered == (slots[-1][0] - slots[0][0]) / timedelta(seconds=1) + 1 + slots[0][1]
    )
    assert len(processes) == 3


def test_masters_killed_one_after_the_other_lose_and_double_no_slot(
    start: Start, spawn: Callable[..., Process], tenants: None, sound: None
) -> None:
    processes = start(3)
    for _ in range(2):
        before = lease().term
        first = master_of(processes)
        first.kill()
        processes.remove(first)
        taken = next_term(before, within=KEEP_ALIVE + 2)
        ticks_after(taken.since or look().now)
    slots = list(
        Tick.objects.filter(handler="plain")
        .order_by("slot")
        .values_list("slot", "missed")
    )
    covered = sum(1 + missed for _, missed in slots)
    assert (
        covered == (slots[-1][0] - slots[0][0]) / timedelta(seconds=2) + 1 + slots[0][1]
    )
    # Once per term, but the row has run within its hour.
    assert Tick.objects.filter(trigger="start").count() == 1


@postgresql
def test_a_scheduler_outlives_the_loss_of_all_its_connections(
    start: Start, tenants: None, sound: None
) -> None:
    """The database was restarted, a pooler hung up, an operator terminated the backends."""
    processes = start(2)
    ticks_after(look().now)
    for _ in range(5):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name LIKE 'millrace%'"
            )
        ticks_after(look().now, count=1)
    ticks_after(look().now)
    assert [process.popen.poll() for process in processes] == [None, None]


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("migrate", "--check"), ("shell", "-c", "import project.urls")],
)
def test_other_commands_start_no_scheduler(
    manage: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    assert manage(*arguments).returncode == 0
    assert not Node.objects.exists()
    assert MasterLease.objects.get().term == 0
    assert not BootstrapStep.objects.exists()
