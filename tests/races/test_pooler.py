"""A real PgBouncer in transaction mode between the processes and PostgreSQL."""

# ruff: noqa: S608  (statements put together from the test's own constants)

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
import pytest

from tests.databases import temporary_server
from tests.processes import Process, run_manage
from tests.races import invariants
from tests.waiting import wait_until

pytestmark = [pytest.mark.race, pytest.mark.postgresql]

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
ITEMS = 1_000
CONFIGURATION = """
[databases]
postgres = host={host} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
"""


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a process behind a pooler; its database is migrated and has items."""
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed")
    with temporary_server() as server, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        host = unquote(urlsplit(server.url).netloc.partition("@")[2])
        text = CONFIGURATION.format(host=host, port=port)
        file = server.folder.parent / "pgbouncer.ini"
        file.write_text(text)
        file.chmod(0o644)
        env = {
            **os.environ,
            "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{port}/postgres",
            "DATABASE_DIRECT_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "tests.races.chaos_settings",
            "FALCON_SERVER_KEEP_ALIVE_SECONDS": "6",
            "DATABASE_LISTEN": "off",
        }
        # It refuses to run as root, and has to get at the server's socket.
        pooler = subprocess.Popen(
            [PROGRAM, str(file)], user=server.user, cwd="/", stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: answers(port), within=10, what="the pooler's answer")
            migrated = run_manage(["migrate", "-v0"], env=env, timeout=120)
            assert migrated.returncode == 0, migrated.stderr
            yield env
        finally:
            pooler.terminate()
            pooler.wait(10)


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.fixture
def start(pooled: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(command: str, **more: str) -> Process:
        log = tmp_path / f"{len(started)}-{command}.log"
        started.append(Process([command], env={**pooled, **more}, log=log))
        return started[-1]

    yield start
    for process in started:
        process.end()


def fill(one: psycopg.Connection) -> None:
    one.execute(
        "INSERT INTO workqueue_tenant (slug, name, is_platform, is_active, modules, time_zone)"
        " SELECT 't' || n, 't' || n, FALSE, TRUE, '[]', 'UTC' FROM generate_series(1, 5) n"
    )
    one.execute(
        "INSERT INTO workqueue_workitem (tenant_id, tenant_slug, handler, dedup_key, status, not_before,"
        " enqueued_at, trigger, time_limit_s, abandon, retry_attempts, retry_base_s, retry_cap_s, node,"
        " attempts, failures, recoveries, rerun, last_error, held_reason)"
        " SELECT id, slug, 'act', 'log:2+query+sleep:0.00' || n, 'pending', now(), now(), 'call', 600, 'requeue', 0, 60,"
        " 3600, '', 0, 0, 0, FALSE, '', ''"
        f" FROM workqueue_tenant, generate_series(1, {ITEMS}) n WHERE slug = 't1'"
    )


def test_behind_a_transaction_pooler_everything_works_as_without(
    pooled: dict[str, str], start: Callable[..., Process]
) -> None:
    with psycopg.connect(pooled["DATABASE_DIRECT_URL"], autocommit=True) as one:
        fill(one)
        commands = ("runscheduler", "runscheduler", "runworker", "runworker")
        processes = [start(command) for command in commands]
        for process in processes:
            process.says("started", within=60)
        processes[2].kill()  # a dead worker's claims are another's

        def left() -> int:
            assert not invariants.broken(one)
            row = one.execute(
                "SELECT count(*) FROM workqueue_workitem WHERE handler = 'act'"
            ).fetchone()
            return int(row[0]) if row else 0

        wait_until(
            lambda: left() == 0, within=90, what="the end of all items", every=0.3
        )
        ran = one.execute(
            "SELECT count(DISTINCT item_id), count(*) FILTER (WHERE outcome = 'succeeded')"
            " FROM audit_run WHERE handler = 'act'"
        ).fetchone()
        assert ran == (ITEMS, ITEMS)
        wait_until(
            lambda: one.execute(
                "SELECT 1 FROM audit_run WHERE handler = 'ticking'"
            ).fetchone(),
            within=30,
            what="a tick's run",
            every=0.3,
        )
        terms = one.execute(
            "SELECT count(*) FROM audit_nodeevent WHERE type = 'elected'"
        ).fetchone()
    assert terms == (1,)
    verdict = run_manage(["checkinvariants"], env=pooled, timeout=60)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    for process in processes:
        assert "Traceback" not in process.log, process.log
        assert "prepared statement" not in process.log, process.log


@pytest.mark.parametrize("command", ["runworker", "runscheduler", "start"])
def test_who_forgot_to_say_that_a_pooler_stands_between_is_told_so_at_the_start(
    start: Callable[..., Process], command: str
) -> None:
    process = start(command, DATABASE_LISTEN="on", FALCON_MODE="worker")
    assert process.wait(within=60) == 78
    assert "pooler in transaction mode" in process.log
    assert "set DATABASE_LISTEN=off" in process.log
    assert "Traceback" not in process.log
