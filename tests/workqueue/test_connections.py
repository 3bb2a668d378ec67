"""Connections: sized by role, followed live, and none left behind."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from threading import Thread
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db import connections as django_connections

from tests.waiting import wait_until
from workqueue import connections
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

on_postgresql = pytest.mark.postgresql


@pytest.fixture(autouse=True)
def undo() -> Iterator[None]:
    yield
    connections.use_no_pool()


def ours() -> int:
    """Server connections of this process, seen from one outside the pool."""
    with connections.plain("observer") as seen:
        return _count(seen)


def _count(seen: psycopg.Connection[Any]) -> int:
    row = seen.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE 'millrace %' AND pid <> pg_backend_pid()"
        # A test before this one may have woken somebody: that thread stays, and sleeps.
        " AND application_name NOT LIKE '%notifier'"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.sqlite
def test_sqlite_has_no_pool_and_clamps_nothing(settings: Any) -> None:
    settings.DB_POOL_SIZE = 5
    connections.use_pool(kind="worker", wanted=14)
    assert connections.size() is None
    assert connections.serves_items() is None
    assert connections.outside_pool() == 1
    connections.resize(20)
    connections.unpooled()
    assert Tenant.objects.exists()


@on_postgresql
@pytest.mark.parametrize(
    ("kind", "wanted", "total"),
    [
        ("web", None, 10),
        ("server", None, 4),
        ("worker", None, 14),
        ("worker", 24, 24),
        ("jobworker", None, 10),
    ],
)
def test_an_unset_pool_is_what_the_role_needs(
    kind: str, wanted: int | None, total: int
) -> None:
    assert connections.size() is None
    connections.use_pool(kind=kind, wanted=wanted)
    assert connections.size() == total
    assert connections.serves_items() == max(1, total - connections.RESERVED)
    assert connection.settings_dict["OPTIONS"]["pool"]["max_size"] == total


@on_postgresql
@pytest.mark.parametrize(
    ("size", "over", "total", "items"),
    [(8, 4, 12, 8), (5, None, 5, 1), (1, 0, 1, 1), (None, 3, 27, 23)],
)
def test_a_set_pool_wins_and_clamps_the_items(
    settings: Any, size: int | None, over: int | None, total: int, items: int
) -> None:
    settings.DB_POOL_SIZE, settings.DB_MAX_OVERFLOW = size, over
    connections.use_pool(kind="worker", wanted=24)
    assert (connections.size(), connections.serves_items()) == (total, items)


@on_postgresql
def test_a_set_pool_does_not_follow_the_concurrency(settings: Any) -> None:
    settings.DB_POOL_SIZE, settings.DB_MAX_OVERFLOW = 8, 4
    connections.use_pool(kind="worker", wanted=14)
    connections.resize(104)
    assert connections.size() == 12


@on_postgresql
def test_the_pool_follows_the_concurrency_live() -> None:
    connections.use_pool(kind="worker", wanted=5)
    assert Tenant.objects.exists()
    pool = connection.pool  # type: ignore[attr-defined]
    assert pool.max_size == 5
    connections.resize(24)
    assert (pool.max_size, connections.size()) == (24, 24)
    connections.resize(6)
    assert (pool.max_size, connections.serves_items()) == (6, 2)


@on_postgresql
@pytest.mark.parametrize(("listen", "outside"), [(True, 3), (False, 1)])
def test_what_stands_outside_the_pool_is_counted(
    settings: Any, listen: bool, outside: int
) -> None:
    settings.DATABASE_LISTEN = listen
    assert connections.outside_pool() == outside


@on_postgresql
def test_behind_a_transaction_pooler_there_are_no_server_side_cursors(
    settings: Any,
) -> None:
    before = connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]
    settings.DATABASE_LISTEN = False
    try:
        connections.use_pool(kind="web")
        assert connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] is True
    finally:
        connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = before


@on_postgresql
def test_dead_peers_are_noticed_and_the_server_sees_who_is_who() -> None:
    connections.use_pool(kind="server")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('application_name')")
        assert cursor.fetchone() == ("millrace server",)
    found = connection.connection.info.get_parameters()
    assert found["keepalives_idle"] == "15"
    assert int(found["tcp_user_timeout"]) == 30_000
    assert found["connect_timeout"] == "5"
    with connections.plain("listener") as other:
        assert (
            other.info.get_parameters()["application_name"]
            == "millrace server listener"
        )
        assert other.info.get_parameters()["keepalives_idle"] == "15"
        assert other.autocommit


@on_postgresql
@pytest.mark.race
def test_finished_threads_leave_no_connection_behind() -> None:
    connections.use_pool(kind="worker", wanted=7)

    def work() -> None:
        try:
            assert Tenant.objects.count() == 1
        finally:
            django_connections.close_all()

    most = 0
    with connections.plain("observer") as seen:
        for _ in range(5):
            threads = [Thread(target=work) for _ in range(20)]
            for thread in threads:
                thread.start()
            most = max(most, _count(seen))
            for thread in threads:
                thread.join(30)
            most = max(most, _count(seen))
    assert 1 <= most <= 7


@on_postgresql
@pytest.mark.race
def test_after_a_restart_of_the_server_no_query_fails_and_the_lost_are_replaced() -> (
    None
):
    connections.use_pool(kind="worker", wanted=6)
    pool = connection.pool  # type: ignore[attr-defined]
    pool.open()
    held = [pool.getconn() for _ in range(6)]
    for one in held:
        pool.putconn(one)
    with connections.plain("observer") as seen:
        seen.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'millrace worker'"
        )
        wait_until(lambda: _count(seen) == 0, within=5)
    for _ in range(12):
        assert Tenant.objects.exists()  # no query meets a dead connection
        connection.close()
    assert ours() <= 6


@on_postgresql
def test_looking_at_a_pooled_connection_asks_the_server_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connections.use_pool(kind="server")
    assert Tenant.objects.exists()
    connection.close()
    sent: list[Any] = []
    real = psycopg.Connection.execute
    monkeypatch.setattr(
        psycopg.Connection, "execute", lambda *a, **k: sent.append(a) or real(*a, **k)
    )
    connection.ensure_connection()
    assert sent == []


@on_postgresql
@pytest.mark.race
def test_whoever_finds_the_pool_empty_is_told_after_five_seconds(settings: Any) -> None:
    settings.DB_POOL_SIZE, settings.DB_MAX_OVERFLOW = 1, 0
    connections.use_pool(kind="web")
    connection.settings_dict["OPTIONS"]["pool"]["timeout"] = 0.2
    connection.ensure_connection()
    told: list[str] = []

    def ask() -> None:
        try:
            Tenant.objects.exists()
        except OperationalError as problem:
            told.append(str(problem))
        finally:
            django_connections.close_all()

    thread = Thread(target=ask)
    thread.start()
    thread.join(10)
    assert connections.WAIT_FOR_ONE == 5.0
    assert "couldn't get a connection" in told[0]


@on_postgresql
@pytest.mark.race
def test_a_threads_own_connection_does_not_come_from_the_pool(settings: Any) -> None:
    settings.DB_POOL_SIZE, settings.DB_MAX_OVERFLOW = 1, 0
    connections.use_pool(kind="worker")
    connection.ensure_connection()  # the pool is empty now
    seen: list[str] = []

    def ask() -> None:
        connections.unpooled("beat")
        try:
            assert Tenant.objects.exists()
            seen.append(connection.connection.info.get_parameters()["application_name"])
        finally:
            django_connections.close_all()

    thread = Thread(target=ask)
    thread.start()
    thread.join(10)
    assert seen == ["millrace worker beat"]
    assert ours() == 1
    assert connection.settings_dict["OPTIONS"]["pool"]["max_size"] == 1


@on_postgresql
@pytest.mark.race
def test_a_forked_child_has_its_own_connections_and_the_parents_live_on() -> None:
    connections.use_pool(kind="web")
    assert Tenant.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        before = cursor.fetchone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that threads do not survive is the point
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            connections.use_pool(kind="web")
            code = 0 if Tenant.objects.count() == 1 else 2
            connections.close_all()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() == before


@pytest.mark.once
def test_importing_everything_starts_no_thread_and_opens_no_connection() -> None:
    script = """
import django, pkgutil, sys, threading, importlib
django.setup()
import workqueue
for found in pkgutil.walk_packages(workqueue.__path__, "workqueue."):
    importlib.import_module(found.name)
from django.db import connections
assert threading.active_count() == 1, threading.enumerate()
assert all(c.connection is None for c in connections.all(initialized_only=True))
"""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
