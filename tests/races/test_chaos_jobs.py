"""Job workers are killed and stopped at random while jobs and their programs run.

MILLRACE_JOB_KILLS says how often (`make chaos-jobs KILLS=200`). Nothing starts twice,
nothing looks alive without a live claimant, no program is left behind.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.databases import Server, temporary_server
from tests.processes import Process, run_manage, sleeping
from tests.waiting import wait_until

pytestmark = [pytest.mark.race, pytest.mark.postgresql]

KILLS = int(os.environ.get("MILLRACE_JOB_KILLS", "4"))
STOPS = int(os.environ.get("MILLRACE_JOB_STOPS", "1"))
OUTAGE = float(os.environ.get("MILLRACE_JOB_OUTAGE", "6"))  # seconds
RUNNING = 6
KEEP_ALIVE = 2.0  # seconds
DRAIN = 3.0  # seconds
# A silent worker is stopped after 2.4 keep-alives; who judges needs a beat and a pass
# of its own, and a machine that is shared is slow.
LIMIT = KEEP_ALIVE * 2.4 + KEEP_ALIVE * 0.4 + 4 + 6
INSERT = """INSERT INTO jobworker_job (id, tenant_id, tenant_slug, type, tier, subject, params, exclusive, lock,
  time_limit_s, priority, status, created_at, created_by, origin, node, progress, phase, phases, line_count,
  dropped_lines, cancel_requested_by, summary, error_code, error)
SELECT gen_random_uuid(), t.id, t.slug, 'act_light', 'light', '', %s::jsonb, '', '', 3600, 0, 'pending',
  clock_timestamp(), 'test', 'command', '', 0, '', '[]', 0, 0, '', '', '', ''
FROM workqueue_tenant t, generate_series(1, %s) WHERE t.is_platform RETURNING 1"""
MARK = f"3{os.getpid()}"  # seconds; so that this run finds its own programs


class Workers:
    """Two job workers, the jobs they run, and what the test sees of it by plain SQL."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder, self.started = server, folder, 0
        self.env = {
            **os.environ,
            "DATABASE_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "tests.engine_settings",
            "FALCON_SERVER_KEEP_ALIVE_SECONDS": f"{KEEP_ALIVE:g}",
            "WORKER_DRAIN_TIMEOUT_S": f"{DRAIN:g}",
        }
        assert run_manage(["migrate", "-v0"], env=self.env, timeout=120).returncode == 0
        self.processes = [self.start() for _ in range(2)]

    def start(self) -> Process:
        self.started += 1
        log = self.folder / f"{self.started}.log"
        process = Process(["runjobworker"], env=self.env, log=log)
        process.says("job runner: caps", within=60)
        return process

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.server.url, autocommit=True) as one:
            yield one

    def ask(self, statement: str, *values: object) -> list[Any]:
        with self.connection() as one:
            return one.execute(statement, values).fetchall()  # type: ignore[arg-type]

    def fill(self, does: str, count: int = RUNNING) -> None:
        """Make pending jobs until so many wait or run, by plain SQL, and wake nobody."""
        [(there,)] = self.ask(
            "SELECT count(*) FROM jobworker_job WHERE status IN ('pending', 'running')"
        )
        self.ask(INSERT, f'{{"does": "{does}", "lock": ""}}', count - there)

    def running(self) -> list[tuple[Any, str]]:
        """(job, host and pid) of what looks alive."""
        return self.ask("SELECT id, node FROM jobworker_job WHERE status = 'running'")

    def end(self) -> None:
        for process in self.processes:
            process.end()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    with temporary_server() as server:
        one = Workers(server, tmp_path)
        yield one
        one.end()


def nobody_alive(workers: Workers, pid: int) -> Callable[[], bool]:
    return lambda: (
        not [job for job, node in workers.running() if node.endswith(f", {pid}")]
    )


def test_whatever_is_killed_no_job_starts_twice_or_looks_alive_or_leaves_a_program(
    workers: Workers,
) -> None:
    chance = random.Random(int(os.environ.get("MILLRACE_SEED", time.time())))  # noqa: S311
    for turn in range(KILLS):
        workers.fill(f"program:{MARK}")
        wait_until(lambda: len(workers.running()) == RUNNING, within=30, what="all run")
        time.sleep(chance.uniform(0, 0.5))
        victim = chance.randrange(2)
        pid = workers.processes[victim].pid
        os.kill(pid, signal.SIGKILL)
        workers.processes[victim].wait()
        wait_until(
            nobody_alive(workers, pid), within=LIMIT, what=f"turn {turn}: failed"
        )
        workers.processes[victim] = workers.start()
    for job, error in workers.ask(
        "SELECT id, error FROM jobworker_job WHERE status = 'failed'"
    ):
        assert " stopped while act_light" in error, job
        assert "It is not started again" in error, job
    workers.end()
    wait_until(lambda: not sleeping(MARK), within=20, what="the end of all programs")
    twice = "SELECT dedup_key FROM audit_run WHERE kind = 'job' GROUP BY 1 HAVING count(*) > 1"
    assert workers.ask(twice) == []
    verdict = run_manage(["checkinvariants"], env=workers.env, timeout=60)
    assert verdict.returncode == 0, verdict.stdout


def test_told_to_stop_a_worker_ends_within_its_drain_and_leaves_nothing(
    workers: Workers,
) -> None:
    for _ in range(STOPS):
        workers.fill(f"program:{MARK}")
        wait_until(lambda: len(workers.running()) == RUNNING, within=30, what="all run")
        process = workers.processes[0]
        began = time.monotonic()
        process.send(signal.SIGTERM)
        assert process.wait(within=DRAIN + 10) == 0
        took = time.monotonic() - began
        assert took <= DRAIN + 2 + 1, f"it took {took:.1f} s"  # shared machines
        wait_until(
            nobody_alive(workers, process.pid), within=LIMIT, what="its jobs' end"
        )
        workers.processes[0] = workers.start()
    workers.end()
    wait_until(lambda: not sleeping(MARK), within=20, what="the end of all programs")


def test_a_database_that_is_away_fails_no_job_and_their_rows_catch_up(
    workers: Workers,
) -> None:
    seconds = OUTAGE + 4
    workers.fill(f"log:{int(seconds * 10)}@10")
    wait_until(lambda: len(workers.running()) == RUNNING, within=30, what="all run")
    workers.server.stop(mode="fast")
    time.sleep(OUTAGE)
    workers.server.start()
    ended = "SELECT count(*) FROM jobworker_job WHERE status = 'succeeded'"
    wait_until(
        lambda: workers.ask(ended) == [(RUNNING,)],
        within=seconds + 40,
        what="all have succeeded",
    )
    lines = workers.ask("SELECT line_count FROM jobworker_job")
    assert {count for (count,) in lines} == {int(seconds * 10)}
