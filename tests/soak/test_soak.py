"""Full size, by hand: `make soak MINUTES=60`. Load that does not stop, and what must stay flat.

On a PostgreSQL of its own: one scheduler, two workers, items as fast as they are run,
one endless transcript beside them, and somebody's snapshot held open for minutes.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.databases import temporary_server
from tests.processes import Process, run_manage
from tests.races import invariants

MINUTES = float(os.environ.get("MILLRACE_SOAK_MINUTES", "0"))
pytestmark = [pytest.mark.soak, pytest.mark.postgresql]
TENANTS = 500
BATCH = 2_000  # items put in at a time
WORKER_CONNECTIONS = 10 + 4 + 3  # concurrency, reserved, and the three outside the pool

FEED = """INSERT INTO workqueue_workitem (tenant_id, tenant_slug, handler, dedup_key, status, not_before,
  enqueued_at, trigger, time_limit_s, abandon, retry_attempts, retry_base_s, retry_cap_s, node, attempts,
  failures, recoveries, rerun, last_error, held_reason)
SELECT t.id, t.slug, 'act', %(does)s || '+log:1+sleep:' || (g * 1e-9), 'pending', clock_timestamp(), clock_timestamp(), 'call', 3600,
  'requeue', 0, 60, 3600, '', 0, 0, 0, FALSE, '', ''
FROM generate_series(1, %(count)s) g JOIN workqueue_tenant t ON t.slug = 't' || g %% 500
ON CONFLICT DO NOTHING"""


class Load:
    """The processes and what they are given."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        env = {
            **os.environ,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "tests.races.chaos_settings",
        }
        assert run_manage(["migrate", "-v0"], env=env, timeout=120).returncode == 0
        with psycopg.connect(url) as one:
            one.execute(
                "INSERT INTO workqueue_tenant (slug, name, is_platform, is_active, modules, time_zone)"
                " SELECT 't' || g, 't', FALSE, TRUE, '[]', 'UTC' FROM generate_series(0, %s) g",
                (TENANTS - 1,),
            )
        self.env = env
        commands = ("runscheduler", "runworker", "runworker")
        self.processes = [
            Process([c], env=env, log=folder / f"{n}.log")
            for n, c in enumerate(commands)
        ]

    def feed(
        self, connection: psycopg.Connection[Any], does: str = "", count: int = BATCH
    ) -> None:
        """Keep the queue from running dry, and from growing."""
        waiting = connection.execute(
            "SELECT count(*) FROM workqueue_workitem WHERE status = 'pending'"
        ).fetchone()
        if waiting and waiting[0] < 2 * BATCH:
            connection.execute(FEED, {"does": does, "count": count})

    def sample(self, connection: psycopg.Connection[Any]) -> dict[str, float]:
        """What must not grow."""
        row = connection.execute(
            "SELECT (SELECT count(*) FROM audit_run), pg_total_relation_size('workqueue_workitem'),"
            " (SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'millrace worker%')"
        ).fetchone()
        assert row
        memory = [_rss_mb(p.pid) for p in self.processes]
        return {
            "runs": row[0],
            "bytes": row[1],
            "connections": row[2],
            "memory": max(memory),
        }

    def end(self) -> None:
        for process in self.processes:
            process.end()


def _rss_mb(pid: int) -> float:
    return (
        int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])
        / 1024
    )


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    with temporary_server() as server:
        one = Load(server.url, tmp_path)
        for process in one.processes:
            process.says("started", within=60)
        yield one
        one.end()


def test_under_load_without_end_nothing_grows_and_nothing_slows_down(
    load: Load,
) -> None:
    samples = []
    ends = time.monotonic() + MINUTES * 60
    with (
        psycopg.connect(load.url, autocommit=True) as one,
        psycopg.connect(load.url) as holder,
    ):
        load.feed(
            one, does="log:2000000", count=1
        )  # endless output beside all the others
        while time.monotonic() < ends:
            load.feed(one)
            if len(samples) % 60 == 20:  # a snapshot held open for most of a minute
                holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                holder.execute("SELECT 1 FROM workqueue_tenant LIMIT 1")
            if len(samples) % 60 == 59:
                holder.rollback()
            samples.append(load.sample(one))
            time.sleep(1)
        with psycopg.connect(load.url) as snapshot:
            snapshot.execute(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
            )
            assert not invariants.broken(snapshot)
    part = max(1, len(samples) // 5)
    first, last = samples[part : 2 * part], samples[-part:]
    rates = [
        (some[-1]["runs"] - some[0]["runs"]) / max(1, len(some) - 1)
        for some in (first, last)
    ]
    assert rates[1] >= 0.7 * rates[0], rates
    assert max(s["memory"] for s in last) <= max(s["memory"] for s in first) + 64
    assert max(s["connections"] for s in samples) <= 2 * WORKER_CONNECTIONS
    assert max(s["bytes"] for s in last) <= 3 * max(s["bytes"] for s in first)
    assert run_manage(["checkinvariants"], env=load.env, timeout=300).returncode == 0
