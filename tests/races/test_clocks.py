"""Processes whose machine's clock is wrong, from seconds to days: the database's clock decides."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from audit import clock
from audit.models import NodeEvent, Run
from scheduler.models import Tick
from tests import factories
from tests.processes import Process
from tests.waiting import wait_until
from workqueue.models import Node, WorkItem

pytestmark = [pytest.mark.race, pytest.mark.postgresql]

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
KEEP_ALIVE = 4  # seconds


@pytest.fixture
def start(spawn: Callable[..., Process], tmp_path: Path) -> Callable[..., Process]:
    """Start a process, its clock off by so much; monotonic time is left alone."""
    if LIBRARY is None:
        pytest.skip("libfaketime is not installed")
    env = {
        "DJANGO_SETTINGS_MODULE": "tests.scheduler.process_settings",
        "FALCON_SERVER_KEEP_ALIVE_SECONDS": str(KEEP_ALIVE),
        "GATE": str(tmp_path / "gate"),
    }

    def start(command: str, offset: str = "") -> Process:
        off = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME": offset,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        process = spawn(command, env={**env, **(off if offset else {})})
        process.says("started", within=60)
        return process

    return start


@pytest.fixture
def tenant(transactional_db: None) -> Iterator[None]:
    factories.tenant("acme")
    yield
    # Whatever a clock said: nothing stored lies outside the time of this test.
    now = clock.now()
    for at in (
        *Tick.objects.values_list("at", flat=True),
        *Run.objects.values_list("finished_at", flat=True),
        *Run.objects.values_list("started_at", flat=True),
        *Run.objects.values_list("claimed_at", flat=True),
        *NodeEvent.objects.values_list("at", flat=True),
        *Node.objects.values_list("heartbeat_at", flat=True),
        *WorkItem.objects.values_list("enqueued_at", flat=True),
    ):
        assert at is None or abs(at - now) < timedelta(minutes=10), at


def test_processes_with_wrong_clocks_are_neither_stopped_nor_masters_side_by_side(
    start: Callable[..., Process], tenant: None
) -> None:
    for offset in ("", "-5m", "+3d"):
        start("runscheduler", offset)
    for offset in ("+30s", "-3d", "+1h"):
        start("runworker", offset)

    def ran() -> int:
        return Run.objects.filter(handler="plain", outcome="succeeded").count()

    wait_until(lambda: ran() >= 2, within=40, what="two runs")
    beats = dict(Node.objects.values_list("id", "heartbeat_at"))
    wait_until(
        lambda: all(
            at - beats[id] > timedelta(seconds=KEEP_ALIVE + 2)
            for id, at in Node.objects.values_list("id", "heartbeat_at")
        ),
        within=40,
        what="beats of every process over more than a keep-alive",
    )
    assert set(Node.objects.values_list("status", flat=True)) == {"running"}
    assert not NodeEvent.objects.filter(type__in=("silent", "stopped")).exists()
    assert NodeEvent.objects.filter(type="elected").count() == 1
    assert not Run.objects.exclude(recoveries=0).exists()
    assert not WorkItem.objects.exclude(recoveries=0).exists()
    workers = Node.objects.filter(kind="worker").order_by("clock_skew_ms")
    skews = [
        round(skew / 1000) for skew in workers.values_list("clock_skew_ms", flat=True)
    ]
    asked = [-3 * 86_400, 30, 3_600]
    assert all(abs(a - b) <= 5 for a, b in zip(skews, asked, strict=True)), skews
