"""Runs the measures that were asked for, each in its own database, and lays out the figures."""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from json import loads
from typing import Any

import psycopg
from django.conf import settings

from project.bench import measures, server, sql

MEASURES = ("items", "history", "snapshot", "latency", "tick", "idle", "lists", "jobs")
HISTORY = 1_000_000  # finished runs
SNAPSHOT_EACH = 15  # items a tenant: 300,000
TICK_TENANTS = 10_000
LISTED = 5_000_000  # finished runs

type Figures = dict[str, Any]


def measure(wanted: Sequence[str], *, say: Callable[[str], Any]) -> Figures:
    """All figures of the measures in `wanted`."""
    figures: Figures = {}
    with server.server() as url:
        with psycopg.connect(url) as connection:
            figures["postgresql"] = connection.info.parameter_status("server_version")
        figures["cores"] = os.cpu_count()
        for name in wanted:
            say(f"measuring {name} ...")
            figures.update(_MEASURES[name](url))
    return figures


def table(figures: Figures) -> str:
    """One figure a line, for people."""
    return "\n".join(f"{name:24} {value}" for name, value in figures.items())


def _items(url: str) -> Figures:
    """Throughput before and after ANALYZE, and the limit, in turn so that the machine's drift cancels."""
    ours, analyzed, limits, rss = [], [], [], []
    with (
        server.database(url, "millrace_bench_items") as own,
        psycopg.connect(own, autocommit=True) as connection,
    ):
        connection.execute(sql.TENANTS, {"count": measures.TENANTS})
        for _ in range(measures.REPEATS):
            limits.append(measures.limit_items(own, connection))
            first = measures.items(own, connection)
            ours.append(first["per_s"])
            rss.append(first["rss_mb"])
            analyzed.append(measures.items(own, connection, analyze=True)["per_s"])
    ratio = statistics.median(a / b for a, b in zip(ours, limits, strict=True))
    return {
        "items_per_s": round(statistics.median(ours)),
        "items_per_s_analyzed": round(statistics.median(analyzed)),
        "limit_items_per_s": round(statistics.median(limits)),
        "items_ratio": round(ratio, 2),
        "peak_rss_mb": round(rss[0], 1),
    }


def _history(url: str) -> Figures:
    """The same with a million finished runs."""
    with (
        server.database(url, "millrace_bench_history") as own,
        psycopg.connect(own, autocommit=True) as connection,
    ):
        connection.execute(sql.TENANTS, {"count": measures.TENANTS})
        empty = [
            measures.items(own, connection)["per_s"] for _ in range(measures.REPEATS)
        ]
        connection.execute(sql.HISTORY, {"count": HISTORY})
        connection.execute(sql.VACUUM)
        full = [
            measures.items(own, connection)["per_s"] for _ in range(measures.REPEATS)
        ]
    return {
        "flat_history": round(statistics.median(full) / statistics.median(empty), 2)
    }


def _snapshot(url: str) -> Figures:
    """300,000 items while another connection holds a snapshot open."""
    with (
        server.database(url, "millrace_bench_snapshot") as own,
        psycopg.connect(own, autocommit=True) as connection,
    ):
        connection.execute(sql.TENANTS, {"count": measures.TENANTS})
        with psycopg.connect(own) as holder:
            holder.execute(sql.HOLD)
            holder.execute(sql.LOOK)
            found = measures.items(own, connection, each=SNAPSHOT_EACH)
    return {
        "held_snapshot": round(found["last_to_first_fifth"], 2),
        "held_snapshot_items_per_s": round(found["per_s"]),
    }


def _latency(url: str) -> Figures:
    with server.database(url, "millrace_bench_latency") as own:
        found = _in_process(own, "latency")
    return {"latency_ms": {key: round(value, 1) for key, value in found.items()}}


def _tick(url: str) -> Figures:
    with (
        server.database(url, "millrace_bench_tick") as own,
        psycopg.connect(own, autocommit=True) as connection,
    ):
        connection.execute(sql.TENANTS, {"count": TICK_TENANTS})
        found = _in_process(own, "tick")
    return {
        "tick_ms": round(found["tick"], 1),
        "limit_tick_ms": round(found["limit"], 1),
        "tick_ratio": round(found["ratio"], 2),
    }


def _idle(url: str) -> Figures:
    """One process at a time, each with nothing due."""
    found = {}
    for name, command, standby in (
        ("worker", "runworker", False),
        ("master", "runscheduler", False),
        ("standby", "runscheduler", True),
        ("jobworker", "runjobworker", False),
    ):
        with server.database(url, f"millrace_bench_{name}") as own:
            found[name] = measures.idle(own, command, server_url=url, standby=standby)
    return {
        "idle_tx_per_min": {
            name: round(figure["per_min"]) for name, figure in found.items()
        },
        "idle_cpu_percent": {
            name: round(figure["cpu_percent"], 2) for name, figure in found.items()
        },
    }


def _lists(url: str) -> Figures:
    """Milliseconds and statements of pages over a full ledger, by what is asked of them."""
    with server.database(url, "millrace_bench_lists") as own:
        found = _in_process(own, "lists", LISTED)
    return {"lists_ms": found}


def _jobs(url: str) -> Figures:
    """What the job worker makes of submits, output, sleepers and changed caps."""
    with server.database(url, "millrace_bench_jobs") as own:
        found = _in_process(own, "jobs")
    with server.sqlite_database() as own:
        found["submit_to_start_sqlite_ms"] = _in_process(own, "submit_to_start")
    return {
        f"jobs_{name}": {key: round(value, 2) for key, value in figures.items()}
        for name, figures in found.items()
    }


def _in_process(url: str, name: str, *arguments: int) -> dict[str, Any]:
    """Run a measure that calls the engine's own functions, with Django set up on that database."""
    code = f"import django; django.setup(); from project.bench import inside; inside.{name}{arguments}"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=server.environment(url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    result: dict[str, Any] = loads(done.stdout.splitlines()[-1])
    return result


_MEASURES: dict[str, Callable[[str], Figures]] = {
    "items": _items,
    "history": _history,
    "snapshot": _snapshot,
    "latency": _latency,
    "tick": _tick,
    "idle": _idle,
    "lists": _lists,
    "jobs": _jobs,
}
