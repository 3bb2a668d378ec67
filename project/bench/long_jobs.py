"""Measures of the job worker. Each starts one on the database of this process."""

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from audit import clock, queries
from jobworker import caps
from jobworker.models import Job
from jobworker.submit import submit
from project.bench import server, sql
from workqueue import policy
from workqueue.models import Node, Tenant

SLEEPERS = 200
NAP = 60.0  # seconds
TALK_SECONDS = 60
TALK_PER_SECOND = 1_000
MANY_LINES = 2_000_000
EDITS = 50


def submit_to_start(count: int = 50) -> dict[str, float]:
    """Milliseconds from the commit of a submit to the start of the job, worker idle."""
    sent: dict[str, int] = {}

    def committed(name: str) -> None:
        sent[name] = time.monotonic_ns()

    with TemporaryDirectory() as folder, _worker():
        marks = Path(folder) / "marks"
        marks.touch()
        for n in range(count):
            time.sleep(random.uniform(0.2, 0.4))  # noqa: S311
            with transaction.atomic():
                transaction.on_commit(partial(committed, str(n)))
                _submit("mark", file=str(marks), name=str(n))
        all_there = lambda: marks.read_text().count("\n") >= count  # noqa: E731
        server.wait_for(all_there, seconds=60, what="the last job's start")
        came = dict(line.split() for line in marks.read_text().splitlines())
    took = sorted((int(came[name]) - at) / 1e6 for name, at in sent.items())
    return {"p50": statistics.median(took), "p95": took[int(count * 0.95)]}


def output(seconds: int = TALK_SECONDS) -> dict[str, float]:
    """Two jobs that write steadily: how late a line is in the table, and what that costs."""
    lines = seconds * TALK_PER_SECOND
    lags: list[float] = []
    with _worker():
        jobs = [_submit("talk", lines=lines, per_second=TALK_PER_SECOND) for _ in "12"]
        _until_running(2)
        running = Job.objects.running().values_list("claim_id", flat=True)
        claims = [claim for claim in running if claim]
        before, began = _commits(), time.monotonic()
        while Job.objects.running().count() == len(jobs):
            time.sleep(0.1)
            lags += [
                (clock.now() - at).total_seconds()
                for claim in claims
                if (at := _newest(claim))
            ]
        # Ours are those of this loop: three statements of their own each time.
        spent = time.monotonic() - began
        per_s = (_commits() - before - 3 * len(lags) / len(jobs)) / spent
        _until_all_ended(seconds=60)
        in_order = all(
            [line.seq for line in queries.lines(claim, after=0, limit=lines + 1)]
            == list(range(1, lines + 1))
            for claim in claims
        )
    lags.sort()
    return {
        "lag_p95_s": lags[int(len(lags) * 0.95)],
        "transactions_per_s": per_s,
        "all_in_order": float(in_order),
    }


def many_lines() -> dict[str, float]:
    """What 2,000,000 lines of one job add to the worker's memory, in MiB."""
    with _worker() as worker:
        _submit("talk", lines=1_000)
        _until_all_ended(seconds=60)
        before = server.peak_rss_mb(worker.pid)
        _submit("talk", lines=MANY_LINES)
        _until_all_ended(seconds=600)
        return {"growth_mb": server.peak_rss_mb(worker.pid) - before}


def sleepers() -> dict[str, float]:
    """200 jobs that wait for the outside, in one process with a pool of 20."""
    _set_caps(light=SLEEPERS, total=SLEEPERS)
    environment = {"DB_POOL_SIZE": "20", "DB_MAX_OVERFLOW": "0"}
    with _worker(**environment) as worker:
        for _ in range(SLEEPERS):
            _submit("nap", seconds=NAP)
        _until_running(SLEEPERS)
        asleep = lambda: _report().get("asleep") == SLEEPERS  # noqa: E731
        server.wait_for(asleep, seconds=30, what="the sleep of all")
        found = {
            "asleep": float(SLEEPERS),
            "rss_mb": server.peak_rss_mb(worker.pid),
            "connections": _connections(),
        }
        _until_all_ended(seconds=180)
    return found


def edits(count: int = EDITS) -> dict[str, float]:
    """Seconds from a changed cap to the worker that uses it; and claims above a cap."""
    took, above = [], 0
    with _worker():
        for _ in range(400):
            _submit("nap", seconds=1.5)
        for n in range(count):
            cap = (1, 4, 2, 8, 3)[n % 5]
            _set_caps(light=cap, total=20)
            at, began = clock.now(), time.monotonic()
            while (_report().get("used") or {}).get("light") != cap:
                above += _claimed_above(cap, at)
                time.sleep(0.05)
            took.append(time.monotonic() - began)
        Job.objects.pending().delete()
        _until_all_ended(seconds=60)
    took.sort()
    return {"p95_s": took[int(count * 0.95)], "claims_above": float(above)}


def _claimed_above(cap: int, at: datetime) -> int:
    """1 where a job was claimed after the change and more than the cap run now."""
    running = Job.objects.running().values_list("claimed_at", flat=True)
    moments = [moment for moment in running if moment]
    return int(len(moments) > cap and max(moments) > at)


@contextmanager
def _worker(**environment: str) -> Iterator[Popen[bytes]]:
    """A job worker that has registered; its peak memory begins there."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        url = server.own_url()
        with server.process(url, "runjobworker", log, **environment) as child:
            ready = lambda: "job runner: caps" in log.read_text()  # noqa: E731
            server.wait_for(ready, seconds=60, what="the start of the job worker")
            yield child
    Node.objects.all().delete()


def _submit(type: str, **params: object) -> Job:
    platform = Tenant.objects.get(is_platform=True)
    return submit(type, params, tenant=platform, who="bench", origin="command")


def _set_caps(**values: int) -> None:
    policy.save(
        values, who="bench", origin="command", why="", declaration=caps.DECLARATION
    )


def _until_running(count: int) -> None:
    all_run = lambda: Job.objects.running().count() >= count  # noqa: E731
    server.wait_for(all_run, seconds=120, what=f"{count} running jobs")


def _until_all_ended(*, seconds: float) -> None:
    ended = lambda: not Job.objects.unfinished().exists()  # noqa: E731
    server.wait_for(ended, seconds=seconds, what="the end of all jobs")


def _report() -> dict[str, Any]:
    found: dict[str, Any] = Node.objects.alive().get(kind="jobworker").report
    return found


def _newest(claim: UUID) -> datetime | None:
    """When the newest line that others can see was written."""
    with connection.cursor() as cursor:
        cursor.execute(sql.NEWEST_LINE, {"claim": claim})
        row = cursor.fetchone()
    return row[0] if row else None


def _commits() -> int:
    with connection.cursor() as cursor:
        name = connection.settings_dict["NAME"]
        cursor.execute(sql.TRANSACTIONS_OF, {"name": name})
        return int(cursor.fetchone()[0])


def _connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql.CONNECTIONS)
        return int(cursor.fetchone()[0])
