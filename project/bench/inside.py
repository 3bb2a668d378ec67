"""Measures that call the engine's own functions; run in a process with Django set up."""

import json
import statistics
import sys
import time
from collections.abc import Callable

from django.db import connection, transaction

from audit import clock
from project.bench import long_jobs, measures, server, sql
from project.bench.lists import in_full
from workqueue import registry
from workqueue.eligible import Call
from workqueue.enqueue import enqueue_tick


def latency() -> None:
    """Print the latencies of single items."""
    sys.stdout.write(json.dumps(measures.latency(server.own_url())) + "\n")


def tick() -> None:
    """Print a tick's milliseconds beside those of the bare INSERT … SELECT, in turn."""
    ours, limits = [], []
    for _ in range(measures.REPEATS + 1):  # the first of each warms up
        limits.append(_timed(_bare))
        ours.append(_timed(_tick))
    ratio = statistics.median(a / b for a, b in zip(ours[1:], limits[1:], strict=True))
    found = {
        "tick": statistics.median(ours[1:]),
        "limit": statistics.median(limits[1:]),
        "ratio": ratio,
    }
    sys.stdout.write(json.dumps(found) + "\n")


def lists(count: int) -> None:
    """Print what pages over a full ledger take."""
    sys.stdout.write(json.dumps(in_full(count)) + "\n")


def submit_to_start() -> None:
    """Print how long a submitted job waits for an idle worker, on whichever database."""
    sys.stdout.write(json.dumps(long_jobs.submit_to_start()) + "\n")


def jobs() -> None:
    """Print the figures of the job worker."""
    found = {
        "submit_to_start_ms": long_jobs.submit_to_start(),
        "output": long_jobs.output(),
        "two_million_lines": long_jobs.many_lines(),
        "sleepers": long_jobs.sleepers(),
        "cap_change": long_jobs.edits(),
    }
    sys.stdout.write(json.dumps(found) + "\n")


def _bare() -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.TICK)


def _tick() -> None:
    with transaction.atomic():
        enqueue_tick(
            Call(row=registry.row("noop"), now=clock.now()),
            trigger="slot",
            tick_id=1,
            slot=clock.now(),
        )


def _timed(act: Callable[[], None]) -> float:
    """Milliseconds of `act` on an empty queue."""
    with connection.cursor() as cursor:
        cursor.execute(sql.EMPTY)
        cursor.execute(sql.CHECKPOINT)
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000
