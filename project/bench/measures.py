"""The measures. Each takes the URL of a database of its own and returns plain numbers."""

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from django.db import transaction

from project.bench import server, sql

TENANTS = 20_000
REPEATS = 3


def median_of(measure: Callable[[], float], repeats: int = REPEATS) -> float:
    """The median of several runs."""
    return statistics.median(measure() for _ in range(repeats))


def items(
    url: str,
    connection: psycopg.Connection[Any],
    *,
    each: int = 1,
    analyze: bool = False,
) -> dict[str, float]:
    """Enqueue a no-op for every tenant, start one worker, time from its first claim to its last commit."""
    connection.execute(sql.ITEMS, {"each": each})
    if analyze:
        connection.execute(sql.ANALYZE)
    connection.execute(sql.CHECKPOINT)
    [since] = connection.execute(sql.NOW).fetchone() or (None,)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "worker.log"
        with server.process(url, "runworker", log) as worker:
            left = lambda: not connection.execute(sql.LEFT).fetchone()[0]  # type: ignore[index]  # noqa: E731
            try:
                server.wait_for(
                    left, seconds=120 + each * 5, what="the queue to run dry"
                )
            except RuntimeError as problem:
                raise RuntimeError(f"{problem}\n{log.read_text()[-2000:]}") from None
            rss = server.peak_rss_mb(worker.pid)
    seconds, count = connection.execute(sql.SPAN, {"since": since}).fetchone() or (0, 0)
    fifths = [
        float(n) / float(s)
        for _, n, s in connection.execute(sql.FIFTHS, {"since": since})
    ]
    return {
        "per_s": count / float(seconds),
        "rss_mb": rss,
        "last_to_first_fifth": fifths[-1] / fifths[0],
    }


def limit_items(url: str, connection: psycopg.Connection[Any]) -> float:
    """One client in turn: claim 100, then delete 100 and insert 100 runs of the same width."""
    connection.execute(sql.ITEMS, {"each": 1})
    connection.execute(sql.CHECKPOINT)
    node, done, began = uuid4(), 0, time.perf_counter()
    with psycopg.connect(url, autocommit=True) as client:
        while rows := client.execute(
            sql.CLAIM, {"node": node}, prepare=True
        ).fetchall():
            params = {
                "node": node,
                "ids": [r[0] for r in rows],
                "claims": [r[1] for r in rows],
                "tenants": [r[2] for r in rows],
                "slugs": [r[3] for r in rows],
            }
            with client.transaction():
                client.execute(sql.DELETE, params, prepare=True)
                client.execute(sql.INSERT, params, prepare=True)
            done += len(rows)
    return done / (time.perf_counter() - began)


def latency(url: str, count: int = 200) -> dict[str, float]:
    """Milliseconds from the commit of a single enqueue to the start of its handler, worker idle."""
    from workqueue.enqueue import enqueue
    from workqueue.models import Tenant

    tenant = Tenant.objects.filter(is_platform=True).get()
    with TemporaryDirectory() as folder:
        stamps = Path(folder) / "stamps"
        stamps.touch()
        sent: dict[str, int] = {}

        def committed(key: str) -> None:
            sent[key] = time.monotonic_ns()

        with server.process(url, "runworker", Path(folder) / "log"):
            enqueue("stamp", tenant=tenant, dedup_key=f"{stamps} warm-up")
            server.wait_for(
                lambda: stamps.stat().st_size, seconds=60, what="the worker's first run"
            )
            time.sleep(2)
            for n in range(count):
                time.sleep(random.uniform(0.035, 0.105))  # noqa: S311
                with transaction.atomic():
                    # The first thing that happens after the COMMIT, before anybody is woken.
                    transaction.on_commit(partial(committed, str(n)))
                    enqueue("stamp", tenant=tenant, dedup_key=f"{stamps} {n}")
            all_there = lambda: stamps.read_text().count("\n") > count  # noqa: E731
            server.wait_for(all_there, seconds=30, what="the last stamp")
        came = dict(line.split() for line in stamps.read_text().splitlines())
    milliseconds = sorted((int(came[key]) - at) / 1e6 for key, at in sent.items())
    return {
        "p50": statistics.median(milliseconds),
        "p99": milliseconds[int(count * 0.99)],
        "max": milliseconds[-1],
    }


def idle(
    url: str, command: str, *, server_url: str, seconds: int = 60, standby: bool = False
) -> dict[str, float]:
    """Transactions a minute and share of a core of one idle process, in a database of its own."""
    name = urlsplit(url).path.removeprefix("/")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.NOTHING_TO_VACUUM)
        if standby:
            connection.execute(sql.FOREIGN_LEASE)
    # Read from another database, so that looking does not count.
    with (
        TemporaryDirectory() as folder,
        psycopg.connect(server_url, autocommit=True) as elsewhere,
        server.process(url, command, Path(folder) / "log") as child,
    ):
        time.sleep(15)  # it has settled
        before, cpu, began = (
            _transactions(elsewhere, name),
            server.cpu_seconds(child.pid),
            time.monotonic(),
        )
        time.sleep(seconds)
        spent, cpu = time.monotonic() - began, server.cpu_seconds(child.pid) - cpu
        if child.poll() is not None:
            raise RuntimeError(
                f"{command} ended: {(Path(folder) / 'log').read_text()[-1500:]}"
            )
        after = _transactions(elsewhere, name)
    return {"per_min": (after - before) * 60 / spent, "cpu_percent": cpu / spent * 100}


def _transactions(connection: psycopg.Connection[Any], name: str) -> int:
    row = connection.execute(sql.TRANSACTIONS_OF, {"name": name}).fetchone()
    return int(row[0]) if row else 0
