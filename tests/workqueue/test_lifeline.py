"""Connections that neither wait for ever nor join a stampede."""

import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.waiting import wait_until
from workqueue import connections, lifeline
from workqueue.lifeline import Guarded, Paced, still_open

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def settings_of_the_test(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.KEEP_ALIVE = timedelta(seconds=2)  # so a statement is given a second
    monkeypatch.setattr(lifeline, "_pace", lifeline._Pace())


@pytest.fixture
def guarded() -> Iterator[psycopg.Connection[Any]]:
    with connections.plain("test") as found:
        yield found


def nowhere() -> dict[str, Any]:
    """The address of nobody."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return {
            "host": "127.0.0.1",
            "port": probe.getsockname()[1],
            "dbname": "x",
            "user": "x",
        }


def test_a_statement_that_is_not_answered_is_cancelled_after_a_beat(
    guarded: psycopg.Connection[Any],
) -> None:
    pid = guarded.info.backend_pid
    began = time.monotonic()
    with pytest.raises(psycopg.OperationalError, match="did not answer in time"):
        guarded.execute("SELECT pg_sleep(60)")
    assert 0.9 < time.monotonic() - began < 4
    assert guarded.closed

    def gone() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]
            )
            return bool(cursor.fetchone()[0] == 0)

    wait_until(gone, within=5, what="the backend ends with its client")


def test_what_is_answered_in_time_works_as_ever(
    guarded: psycopg.Connection[Any],
) -> None:
    assert guarded.execute("SELECT 1 + %s", [1]).fetchone() == (2,)
    rows = guarded.execute(
        "SELECT repeat('x', 1000) FROM generate_series(1, 20000)"
    ).fetchall()
    assert len(rows) == 20_000
    text = "y" * 5_000_000
    assert guarded.execute("SELECT length(%s::text)", [text]).fetchone() == (5_000_000,)
    with pytest.raises(psycopg.errors.DivisionByZero):
        guarded.execute("SELECT 1 / 0")
    assert not guarded.closed


def test_a_server_that_accepts_and_says_nothing_is_given_up() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(5)
        host, port = server.getsockname()
        with pytest.raises(psycopg.OperationalError):
            Guarded.connect(
                host=host, port=port, dbname="x", user="x", connect_timeout=2
            )


def test_while_it_fails_a_process_tries_to_connect_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[float] = []
    real = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]

    def connect(cls: Any, *given: Any, **more: Any) -> Any:
        tried.append(time.monotonic())
        return real(cls, *given, **more)

    monkeypatch.setattr(psycopg.Connection, "connect", classmethod(connect))
    address, stop = nowhere(), threading.Event()

    def hammer() -> None:
        while not stop.wait(0.01):
            with pytest.raises(psycopg.OperationalError):
                Paced.connect(**address)

    with pytest.raises(psycopg.OperationalError):
        Paced.connect(**address)
    threads = [threading.Thread(target=hammer) for _ in range(8)]
    for thread in threads:
        thread.start()
    stop.wait(2.5)
    stop.set()
    for thread in threads:
        thread.join(10)
    assert 2 <= len(tried) <= 4


def test_after_one_that_went_well_everybody_may_connect_at_once() -> None:
    with pytest.raises(psycopg.OperationalError):
        Paced.connect(**nowhere())
    with pytest.raises(psycopg.OperationalError, match="next attempt in"):
        connections.plain("test")
    wait_until(lambda: _connects(), within=5)
    for _ in range(5):
        connections.plain("test").close()


def _connects() -> bool:
    try:
        connections.plain("test").close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_connection_that_the_server_closed_is_recognised_without_asking(
    guarded: psycopg.Connection[Any],
) -> None:
    still_open(guarded)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [guarded.info.backend_pid])

    def refused() -> bool:
        try:
            still_open(guarded)
        except psycopg.OperationalError:
            return True
        return False

    wait_until(refused, within=5)
    assert guarded.closed
