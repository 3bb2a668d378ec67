"""Workers and masters are killed, frozen and stopped at random, the database too; nothing is lost.

MILLRACE_KILLS says how often (`make chaos KILLS=500`), MILLRACE_OUTAGE for how many seconds
the database is away at a stretch (`make chaos OUTAGE=300`). On PostgreSQL the tests have a
server of their own, so that they may restart it and end its backends.
"""

# ruff: noqa: S608  (statements put together from the test's own constants)

import os
import random
import signal
import socket
import sqlite3
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.databases import Server, temporary_server
from tests.processes import Process, run_manage
from tests.races import invariants
from tests.waiting import wait_until
from workqueue.wakeup import CHANNEL

pytestmark = pytest.mark.race

KILLS = int(os.environ.get("MILLRACE_KILLS", "6"))
OUTAGE = float(os.environ.get("MILLRACE_OUTAGE", "6"))  # seconds
BACK = 30  # seconds within which everything works again once the database does
TENANTS = 5
COMMANDS = ("runscheduler", "runscheduler", "runworker", "runworker", "runworker")
SETTLED = 90  # seconds within which everything is finished once the killing stops


class Chaos:
    """The processes, and what is done to them."""

    def __init__(
        self, *, url: str, folder: Path, server: Server | None, seed: int
    ) -> None:
        self.url, self.folder, self.server = url, folder, server
        self.random = random.Random(seed)  # noqa: S311
        self.env = {
            **os.environ,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "tests.races.chaos_settings",
            "FALCON_SERVER_KEEP_ALIVE_SECONDS": "2",
            "WORKER_DRAIN_TIMEOUT_S": "2",
        }
        self.started = 0
        self.enqueued: set[str] = set()
        self.did: list[str] = []
        assert run_manage(["migrate", "-v0"], env=self.env, timeout=120).returncode == 0
        self.make_tenants()
        self.processes = [self.start(command) for command in COMMANDS]

    def start(self, command: str) -> Process:
        self.started += 1
        log = self.folder / f"{self.started}-{command}.log"
        return Process([command], env=self.env, log=log)

    def replace(self, n: int) -> None:
        self.processes[n].end()
        self.processes[n] = self.start(COMMANDS[n])

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """One snapshot."""
        if self.server is None:
            one = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30)
            try:
                with one:
                    yield one
            finally:
                one.close()
        else:
            with psycopg.connect(self.url, connect_timeout=5) as one:
                yield one

    def make_tenants(self) -> None:
        with self.connection() as one:
            for n in range(TENANTS):
                one.execute(
                    "INSERT INTO workqueue_tenant (slug, name, is_platform, is_active, modules, time_zone)"
                    f" VALUES ('t{n}', 't{n}', {self.no}, {self.yes}, '[]', 'UTC')"
                )

    @property
    def yes(self) -> str:
        return "TRUE" if self.server else "1"

    @property
    def no(self) -> str:
        return "FALSE" if self.server else "0"

    def enqueue(self, count: int = 4, seconds: float | None = None) -> None:
        """Items, as a caller's own transaction would; acknowledged when this returns.

        `seconds` that each takes; None: at random, less than one.
        """
        keys = [
            f"log:{len(self.enqueued) + n + 1}+sleep:{seconds or self.random.randint(0, 5) / 10}"
            for n in range(count)
        ]
        now = "now()" if self.server else "strftime('%Y-%m-%d %H:%M:%f', 'now')"
        with suppress(psycopg.Error), self.connection() as one:
            for key in keys:
                handler = self.random.choice(("act", "act", "act", "act_fail"))
                one.execute(
                    "INSERT INTO workqueue_workitem (tenant_id, tenant_slug, handler, dedup_key, status, not_before,"
                    " enqueued_at, trigger, time_limit_s, abandon, retry_attempts, retry_base_s, retry_cap_s, node,"
                    " attempts, failures, recoveries, rerun, last_error, held_reason)"
                    f" SELECT id, slug, '{handler}', '{key}', 'pending', {now}, {now}, 'call', 600,"
                    f" '{'fail' if handler == 'act_fail' else 'requeue'}', 0, 60, 3600, '', 0, 0, 0, {self.no}, '', ''"
                    " FROM workqueue_tenant WHERE slug = 't1'"
                )
            if self.server:  # else the first worker that looks may take them all
                one.execute("SELECT pg_notify(%s, '')", [CHANNEL])
            one.commit()
            self.enqueued.update(keys)

    def act(self) -> None:
        """One misfortune."""
        acts: list[Callable[[], str]] = [self.kill, self.kill, self.terminate]
        if self.server is not None:
            acts += [self.freeze, self.end_backends, self.restart_database]
        self.did.append(self.random.choice(acts)())

    def kill(self) -> str:
        n = self.random.randrange(len(COMMANDS))
        self.replace(n)
        return f"killed {COMMANDS[n]}"

    def terminate(self) -> str:
        n = self.random.randrange(len(COMMANDS))
        self.processes[n].send(signal.SIGTERM)
        self.processes[n].wait(within=30)
        self.replace(n)
        return f"stopped {COMMANDS[n]}"

    def freeze(self) -> str:
        """Longer than a worker may be silent, sometimes."""
        n = self.random.randrange(len(COMMANDS))
        seconds = self.random.uniform(0.5, 7)
        self.processes[n].freeze()
        time.sleep(seconds)
        self.processes[n].thaw()
        return f"froze {COMMANDS[n]} for {seconds:.1f} s"

    def end_backends(self) -> str:
        with suppress(psycopg.Error), self.connection() as one:
            one.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND random() < 0.5"
            )
        return "ended half of the backends"

    def restart_database(self) -> str:
        assert self.server
        mode = self.random.choice(("fast", "immediate"))
        self.server.stop(mode=mode)
        time.sleep(self.random.uniform(0, 2))
        self.server.start()
        return f"restarted the database ({mode})"

    def sample(self) -> None:
        """The rules hold now."""
        with suppress(psycopg.OperationalError), self.connection() as one:
            if self.server is not None:
                one.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found = invariants.broken(one)
            assert not found, f"{found}\nafter {self.did}"

    def count(self, statement: str) -> int:
        with self.connection() as one:
            return int(one.execute(statement).fetchone()[0])

    def left(self) -> list[Any]:
        """Items that are not finished and not held."""
        with self.connection() as one:
            statement = "SELECT handler, dedup_key, status, recoveries FROM workqueue_workitem WHERE status <> 'held' AND handler <> 'ticking'"
            return list(one.execute(statement).fetchmany(20))

    def lost(self) -> set[str]:
        """What was enqueued and has neither an end in the ledger nor is held."""
        with self.connection() as one:
            kept = one.execute(
                "SELECT dedup_key FROM audit_run WHERE handler <> 'ticking'"
                " UNION SELECT dedup_key FROM workqueue_workitem WHERE status = 'held'"
            ).fetchall()
        return self.enqueued - {key for (key,) in kept}

    def end(self) -> None:
        for process in self.processes:
            process.end()


class Knocks:
    """Stands at the address of a stopped server and counts who asks for a connection."""

    def __init__(self, socket_file: Path) -> None:
        self.by_pid: Counter[int] = Counter()
        self.socket_file = socket_file

    def __enter__(self) -> "Knocks":
        self.socket_file.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.socket_file))
        self._socket.listen(100)
        threading.Thread(target=self._answer, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.socket_file.unlink()

    def _answer(self) -> None:
        with suppress(OSError):  # closed
            while True:
                one, _ = self._socket.accept()
                whose = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                self.by_pid[struct.unpack("3i", whose)[0]] += 1
                one.close()


@pytest.fixture
def chaos(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chaos]:
    seed = int(os.environ.get("MILLRACE_SEED", time.time()))
    on_postgresql = os.environ["DATABASE_URL"].startswith("postgres")
    if on_postgresql:
        with temporary_server() as server:
            one = Chaos(url=server.url, folder=tmp_path, server=server, seed=seed)
            yield one
            one.end()
    else:
        one = Chaos(
            url=f"sqlite:///{tmp_path / 'chaos.sqlite3'}",
            folder=tmp_path,
            server=None,
            seed=seed,
        )
        yield one
        one.end()


def test_nothing_is_lost_or_doubled_whatever_is_killed(chaos: Chaos) -> None:
    for process in chaos.processes:
        process.says("started", within=60)
    for _ in range(KILLS):
        chaos.enqueue()
        chaos.act()
        until = time.monotonic() + chaos.random.uniform(0.3, 1.5)
        while time.monotonic() < until:
            chaos.sample()
            time.sleep(0.1)
    wait_until(
        lambda: not chaos.left(),
        within=SETTLED,
        what=f"the end of all items; left {chaos.left()}, after {chaos.did}",
        every=0.5,
    )
    chaos.sample()
    assert chaos.lost() == set(), chaos.did
    assert len(chaos.enqueued) >= 4
    verdict = run_manage(["checkinvariants"], env=chaos.env, timeout=60)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    for log in chaos.folder.glob("*.log"):
        assert "Traceback" not in log.read_text(errors="replace"), log.read_text(
            errors="replace"
        )[-4000:]


@pytest.mark.postgresql
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_database_that_is_away_ends_no_process_and_loses_no_item(
    chaos: Chaos, mode: str
) -> None:
    server = chaos.server
    assert server
    for process in chaos.processes:
        process.says("started", within=60)
    chaos.enqueue(count=30, seconds=4)
    running = "SELECT count(*) FROM workqueue_workitem WHERE status = 'executing'"
    wait_until(
        lambda: chaos.count(running) >= 20, within=20, what="items that are executed"
    )
    began = time.monotonic()
    socket_file = server.socket_file()
    server.stop(mode=mode)
    with Knocks(socket_file) as knocks:
        time.sleep(OUTAGE)
    away = time.monotonic() - began
    server.start()
    back = datetime.now(UTC)
    chaos.enqueue()
    ticked = f"SELECT count(*) FROM scheduler_tick WHERE at > '{back}'"
    wait_until(
        lambda: not chaos.left() and chaos.count(ticked),
        within=BACK,
        what="the end of all items, and a tick",
    )
    chaos.sample()
    assert chaos.lost() == set()
    assert [process.popen.poll() for process in chaos.processes] == [None] * 5
    # One attempt a second each, and those with which it finds out that it is away.
    asked = [knocks.by_pid[process.pid] / away for process in chaos.processes]
    assert max(asked) <= 1 + 6 / away, asked
    assert min(asked) > 0
