"""SIGTERM to `start`: everything ends within the drain and two seconds, and nothing is lost.

With what holds up a stop: a run that goes on, a browser that keeps its connection, a
request that is under way. And one scheduler, however many web processes there are.
"""

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.db import transaction

from audit.models import Run
from jobworker.models import Job
from project.modes import MODES
from scheduler.models import MasterLease
from tests import factories
from tests.processes import Process
from tests.waiting import wait_until
from workqueue.models import Node, Tenant, WorkItem

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

DRAIN = 2.0  # seconds
LOOPBACK = "127.0.0.1"
type Start = Callable[..., tuple[Process, int]]


@pytest.fixture
def start(spawn: Callable[..., Process]) -> Start:
    """`start` in a mode, on a port of its own; waits until all its processes are there."""
    factories.superuser()  # else it would make one, and keep the password in a file

    def start(mode: str, **env: str) -> tuple[Process, int]:
        with socket.create_server((LOOPBACK, 0)) as taken:
            port = taken.getsockname()[1]
        process = spawn(
            "start",
            env={
                "DJANGO_SETTINGS_MODULE": "tests.engine_settings",
                "FALCON_MODE": mode,
                "PORT": str(port),
                "WORKER_DRAIN_TIMEOUT_S": f"{DRAIN:g}",
                **env,
            },
        )
        names = {one.name for one in MODES[mode].processes}
        wanted = {"server" if name == "scheduler" else name for name in names}
        wait_until(
            lambda: wanted <= set(Node.objects.alive().values_list("kind", flat=True)),
            within=120,
            what=f"{wanted} among the processes",
        )
        return process, port

    return start


@pytest.fixture
def connect() -> Iterator[Callable[[int, bytes], socket.socket]]:
    """Connect to a port, send something, and stay."""
    with ExitStack() as stack:

        def connect(port: int, said: bytes) -> socket.socket:
            one = stack.enter_context(socket.create_connection((LOOPBACK, port), 10))
            one.sendall(said)
            return one

        yield connect


def enqueue(of: Tenant, does: str) -> WorkItem:
    return factories.item(
        of, "act", dedup_key=does, tenant_slug=of.slug, trigger="call"
    )


def stop_in_time(process: Process) -> None:
    began = time.monotonic()
    process.terminate()
    assert process.wait(within=DRAIN + 15) == 0, process.log
    assert time.monotonic() - began <= DRAIN + 2, process.log


def test_all_ends_within_the_drain_and_two_seconds_and_loses_nothing(
    start: Start,
    connect: Callable[[int, bytes], socket.socket],
    spawn: Callable[..., Process],
) -> None:
    acme = factories.tenant("acme")
    process, port = start("all")
    with (
        transaction.atomic()
    ):  # a worker that looks in between would end the short ones first
        short = [enqueue(acme, f"sleep:1.{n}") for n in range(2)]
        long = enqueue(acme, "sleep:60")
        job = factories.job(acme, params={"does": "busy:60"})
    executing = WorkItem.objects.executing()
    wait_until(lambda: executing.count() == 3, what="three items in hand")
    wait_until(lambda: Job.objects.running().exists(), what="a job in hand")
    kept = connect(port, b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
    assert kept.recv(1000).startswith(b"HTTP/1.1 200")
    connect(
        port,
        b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nand",
    )

    stop_in_time(process)

    items = Run.objects.exclude(kind="job")
    assert dict(items.values_list("item_id", "outcome")) == {
        **{one.pk: "succeeded" for one in short},
        long.pk: "abandoned",
    }
    assert list(WorkItem.objects.values_list("pk", "status")) == [(long.pk, "pending")]
    assert {node.status for node in Node.objects.all()} == {"stopped"}
    job.refresh_from_db()
    assert (job.status, job.error_code) == ("failed", "drained")
    assert "it is not started again" in job.error
    assert "Traceback" not in process.log

    # Whoever comes next has it at once: nobody waits for a process to count as stopped.
    spawn("runworker", env={"DJANGO_SETTINGS_MODULE": "tests.engine_settings"})
    wait_until(lambda: executing.exists(), within=20, what="the item, executing again")


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_ends_in_order_and_its_processes_count_as_stopped(
    start: Start, mode: str
) -> None:
    process, _ = start(mode)
    stop_in_time(process)
    assert {node.status for node in Node.objects.all()} == {"stopped"}
    assert "Traceback" not in process.log


def test_a_job_worker_on_its_own_has_no_port_and_takes_no_part_in_the_election(
    start: Start,
) -> None:
    process, port = start("jobworker")
    process.says("job runner: caps heavy=2 medium=1 light=3 total=3 (threads=25)")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port), 1)
    assert set(Node.objects.values_list("kind", flat=True)) == {"jobworker"}
    assert not MasterLease.objects.exclude(holder=None).exists()
    assert "migration" not in process.log


def test_there_is_one_scheduler_however_many_web_processes(start: Start) -> None:
    start("all", WEB_PROCESSES="4")
    kinds = Node.objects.alive().values_list("kind", flat=True)
    wait_until(lambda: Counter(kinds.all())["web"] == 4, what="four web processes")
    assert Counter(kinds.all()) == {
        "web": 4,
        "server": 1,
        "worker": 1,
        "jobworker": 1,
    }
