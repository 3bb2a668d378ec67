"""The beat: one statement, on time, whatever happens to its connection."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from audit import clock
from audit.models import NodeEvent
from tests.waiting import wait_until
from workqueue import connections, node
from workqueue.beat import Beat
from workqueue.models import Node
from workqueue.node import Me

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def keep_alive(settings: Any) -> None:
    settings.KEEP_ALIVE = timedelta(seconds=2.5)  # a beat per second


@pytest.fixture
def me() -> Me:
    return node.register(kind="worker", report={})


@pytest.fixture
def beating(me: Me) -> Iterator[Callable[..., Beat]]:
    """Start a beat; it is stopped with the test."""
    started: list[Beat] = []

    def start(**options: Any) -> Beat:
        started.append(Beat(me=me, **{"report": dict, **options}))
        started[-1].start()
        return started[-1]

    yield start
    for beat in started:
        beat.stop()


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [1000.0]
    monkeypatch.setattr(clock, "steady", lambda: at[0])
    return at


def row(me: Me) -> Node:
    return Node.objects.get(pk=me.id)


def backend(name: str = "beat") -> int | None:
    """The pid of the server process that serves the beat."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE %s",
            [f"millrace%{name}"],
        )
        found = cursor.fetchone()
    return found[0] if found else None


def test_a_beat_is_one_statement_in_database_time_with_report_and_skew(me: Me) -> None:
    Node.objects.update(heartbeat_at="2026-01-01T00:00Z")
    beat = Beat(me=me, report=lambda: {"in_flight": 3})
    with CaptureQueriesContext(connection) as queries:
        beat._once()
    assert len(queries) == 1
    found = row(me)
    assert found.report == {"in_flight": 3}
    assert abs(found.heartbeat_at - clock.now()) < timedelta(seconds=5)
    assert abs(found.clock_skew_ms) < 5000


def test_beats_come_by_themselves_and_at_once_when_asked(
    me: Me, beating: Callable[..., Beat]
) -> None:
    beat = beating(interval=timedelta(seconds=0.2))
    first = row(me).heartbeat_at
    wait_until(lambda: row(me).heartbeat_at > first, within=5)
    reports = iter(range(1000))
    slow = beating(interval=timedelta(hours=1), report=lambda: {"n": next(reports)})
    slow.beat_now()
    wait_until(lambda: row(me).report == {"n": 0}, within=5)
    beat.stop()
    assert "beat" not in {thread.name for thread in threading.enumerate()} - {
        slow._thread.name
    }


def test_tasks_run_after_each_beat_and_one_that_raises_stops_nothing(
    me: Me, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def bad() -> None:
        raise ValueError("no\nlease")

    beat = Beat(me=me, report=dict, tasks=(bad, lambda: done.append("good")))
    beat._once()
    beat._once()
    assert done == ["good", "good"]
    told = [r.message for r in caplog.records if "task of the beat" in r.message]
    assert told[0] == "task of the beat failed task=bad: ValueError: no lease"


@pytest.mark.parametrize(
    "report",
    [lambda: {"x": float("nan")}, lambda: {"x": object()}, lambda: 1 / 0],
    ids=["not a number", "no JSON", "raises"],
)
def test_a_report_that_cannot_be_made_says_so_and_stops_no_beat(
    me: Me, report: Any
) -> None:
    Beat(me=me, report=report)._once()
    assert "problem" in row(me).report


def test_a_nul_in_a_report_stops_no_beat(me: Me) -> None:
    Beat(me=me, report=lambda: {"x": "a\x00b"})._once()
    assert row(me).report == {"x": "ab"}


def test_whoever_was_marked_stopped_runs_again_with_its_next_beat(me: Me) -> None:
    Node.objects.update(status="stopped", stopped_at=clock.now())
    Beat(me=me, report=lambda: {"a": 1})._once()
    assert (row(me).status, row(me).stopped_at, row(me).report) == (
        "running",
        None,
        {"a": 1},
    )
    assert NodeEvent.objects.latest("id").type == "returned"


def test_whoever_lost_its_row_writes_it_again(me: Me) -> None:
    Node.objects.all().delete()
    Beat(me=me, report=dict)._once()
    assert row(me).status == "running"


def test_it_may_judge_only_after_a_full_keep_alive_of_beats(
    me: Me, steady: list[float]
) -> None:
    me.registered = steady[0]
    beat = Beat(me=me, report=dict)
    told = []
    for _ in range(4):
        told.append(beat.may_judge())
        steady[0] += 1.0
        beat._once()
    assert [*told, beat.may_judge()] == [False, False, False, True, True]


def test_an_outage_takes_the_right_to_judge_for_a_keep_alive(
    me: Me, steady: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    me.registered = steady[0]
    beat = Beat(me=me, report=dict)
    for _ in range(3):
        steady[0] += 1.0
        beat._once()
    assert beat.may_judge()

    def away(*_: Any) -> Any:
        raise OperationalError("away")

    with monkeypatch.context() as patch:
        patch.setattr(beat, "_write", away)
        for _ in range(5):
            steady[0] += 1.0
            beat._once()
    assert not beat.fresh()
    beat._once()
    assert beat.fresh()
    assert not beat.may_judge()
    steady[0] += 1.0
    beat._once()
    steady[0] += 1.0
    beat._once()
    assert not beat.may_judge()
    steady[0] += 1.0
    beat._once()
    assert beat.may_judge()


def test_a_process_that_was_frozen_does_not_judge_when_it_wakes(
    me: Me, steady: list[float]
) -> None:
    me.registered = steady[0]
    beat = Beat(me=me, report=dict)
    for _ in range(5):
        steady[0] += 1.0
        beat._once()
    steady[0] += 60
    assert not beat.may_judge()
    assert not beat.fresh()
    beat._once()
    assert not beat.may_judge()


def test_a_beat_counts_from_before_it_was_sent(
    me: Me, steady: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = Beat(me=me, report=dict)
    real = beat._write

    def slow(report: str) -> Any:
        steady[0] += 1.4
        return real(report)

    monkeypatch.setattr(beat, "_write", slow)
    beat._once()
    assert beat.fresh()
    steady[0] += 0.2  # 1.6 s after the request, 0.2 s after the reply; the limit is 1.5
    assert not beat.fresh()


def test_an_outage_is_told_once_and_costs_an_attempt_a_second(
    me: Me, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    beat = Beat(me=me, report=dict)

    def away(*_: Any) -> Any:
        raise OperationalError("away")

    with monkeypatch.context() as patch:
        patch.setattr(beat, "_write", away)
        waits = [beat._once() for _ in range(5)]
    assert waits == [0.0, 1.0, 1.0, 1.0, 1.0]
    beat._once()
    told = [r.message for r in caplog.records if r.name == "workqueue.beat"]
    assert [line.split(" node=")[0] for line in told] == ["beat failed", "beat is back"]


def test_a_mistake_in_the_beat_itself_does_not_end_it(
    me: Me, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = Beat(me=me, report=dict)
    with monkeypatch.context() as patch:
        patch.setattr(beat, "_write", lambda _: 1 / 0)
        beat._once()
    assert beat._once() <= 1.0
    assert beat.fresh()


@pytest.mark.postgresql
@pytest.mark.race
def test_a_backend_terminated_under_it_costs_no_more_than_a_beat(
    me: Me, beating: Callable[..., Beat]
) -> None:
    beat = beating()
    first = wait_until(backend, within=5)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [first])
    before = row(me).heartbeat_at
    second = wait_until(lambda: (pid := backend()) != first and pid, within=5)
    after = wait_until(lambda: (at := row(me).heartbeat_at) > before and at, within=5)
    assert second
    assert after - before < timedelta(seconds=2.2)
    assert beat.fresh()


@pytest.mark.postgresql
@pytest.mark.race
def test_a_frozen_backend_does_not_hang_it(
    me: Me, beating: Callable[..., Beat]
) -> None:
    beating()
    pid = wait_until(backend, within=5)
    if not Path(f"/proc/{pid}").exists():
        pytest.skip("the server's processes are not on this machine")
    os.kill(pid, signal.SIGSTOP)
    try:
        before = row(me).heartbeat_at
        wait_until(lambda: row(me).heartbeat_at > before, within=10)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert NodeEvent.objects.filter(type="silent").count() == 0


@pytest.mark.postgresql
@pytest.mark.race
def test_a_lock_on_its_row_neither_hangs_it_nor_piles_up_backends(
    me: Me, beating: Callable[..., Beat]
) -> None:
    beat = beating()
    wait_until(backend, within=5)
    with transaction.atomic():
        Node.objects.select_for_update().get(pk=me.id)
        wait_until(lambda: beat._failures >= 4, within=20)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name LIKE 'millrace%beat'"
            )
            assert cursor.fetchone()[0] <= 2  # one that ends, and the present one
    wait_until(beat.fresh, within=10)


@pytest.mark.postgresql
@pytest.mark.race
def test_a_full_pool_does_not_stop_it(
    me: Me, beating: Callable[..., Beat], settings: Any
) -> None:
    settings.DB_POOL_SIZE, settings.DB_MAX_OVERFLOW = 1, 0
    connections.use_pool(kind="worker")
    try:
        beat = beating()
        before = row(me).heartbeat_at
        with transaction.atomic():  # the only pooled connection is ours now
            confirmed = beat._confirmed
            wait_until(lambda: beat._confirmed > confirmed + 1, within=10)
        assert row(me).heartbeat_at > before
        beat.stop()
    finally:
        connections.use_no_pool()
