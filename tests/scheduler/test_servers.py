"""Processes as the screens show them: what is decided here is only what is shown."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from audit import clock
from scheduler import servers
from scheduler.models import MasterLease, Tick
from tests import factories
from workqueue.models import Node

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 29, 14, 32, 10, tzinfo=UTC)


def lease(node: Node | None, *, expires: timedelta = timedelta(seconds=23)) -> None:
    MasterLease.objects.update_or_create(
        id=1,
        defaults={
            "holder": node.id if node else None,
            "node": str(node or "app-1, 21"),
            "term": 41,
            "since": NOW - timedelta(hours=5),
            "renewed_at": NOW - timedelta(seconds=2),
            "expires_at": NOW + expires,
        },
    )


def node(kind: str = "server", **values: object) -> Node:
    return factories.node(
        kind, **{"heartbeat_at": NOW - timedelta(milliseconds=100), **values}
    )


def shown() -> list[servers.Process]:
    return servers.processes(servers.mastership(NOW), now=NOW)


def test_the_holder_of_a_lease_in_force_is_master_and_the_others_stand_by():
    first, second = node(host="app-1"), node(host="app-2")
    lease(second)
    found = {row.host: (row.state, row.yes) for row in shown()}
    assert found == {"app-1": ("standby", "No"), "app-2": ("master", "Yes, term 41")}
    assert shown()[0].id == second.id != first.id


def test_nobody_is_master_once_the_lease_has_expired():
    lease(node(), expires=timedelta(seconds=-1))
    assert not servers.mastership(NOW).held
    assert shown()[0].state == "standby"


def test_the_newest_tick_comes_with_the_lease_in_one_statement(
    django_assert_num_queries,
):
    lease(node())
    for back in (20, 10):
        at = NOW - timedelta(seconds=back)
        Tick.objects.create(
            handler="a",
            trigger="slot",
            slot=at,
            at=at,
            term=41,
            lateness_ms=back,
            enqueued=back,
        )
    with django_assert_num_queries(1):
        found = servers.mastership(NOW)
    assert (found.tick_enqueued, found.tick_late) == (10, timedelta(milliseconds=10))


def test_an_installation_without_a_lease_row_has_no_master_and_no_error():
    MasterLease.objects.all().delete()
    assert servers.mastership(NOW).term == 0


def test_a_process_is_silent_when_more_than_a_beat_is_overdue():
    node("worker", heartbeat_at=NOW - timedelta(hours=1))
    assert shown()[0].state == "silent"


def test_web_processes_of_one_machine_are_one_row_with_the_oldest_beat():
    for pid, age in ((22, 1), (27, 3)):
        node(
            "web", host="app-1", pid=pid, heartbeat_at=NOW - timedelta(milliseconds=age)
        )
    (row,) = shown()
    assert row.name == "web, 2 processes"
    assert row.pids == (22, 27)
    assert row.heartbeat_at == NOW - timedelta(milliseconds=3)


def test_a_reduced_limit_is_shown_with_what_was_asked_and_why():
    why = "Its pool of 12 connections serves 8. Raise DB_POOL_SIZE or DB_MAX_OVERFLOW there."
    node(
        "worker", report={"slots": {"asked": 12, "used": 8, "why": why}, "in_flight": 3}
    )
    (row,) = shown()
    assert row.limit is not None
    assert row.limit.reduced
    assert row.limit.words.replace("\u00a0", " ") == "12 \u2192 8 items"
    assert row.limit.short == "pool of 12 connections serves 8"
    assert row.busy == 3


@pytest.mark.parametrize(
    "report",
    [
        [],
        "text",
        None,
        {"slots": 3},
        {"slots": {"asked": "many"}},
        {"slots": {"asked": True, "used": None}},
        {"in_flight": "x"},
    ],
)
def test_a_report_that_cannot_be_read_gives_no_limit_and_no_error(report):
    row = node("worker", report={})
    row.report = report
    found = servers.process(row, servers.mastership(NOW), now=NOW)
    assert found.limit is None
    assert isinstance(servers.report(row), list)


def test_a_clock_that_is_off_is_told_once_per_machine_with_its_side():
    node("server", host="app-2", clock_skew_ms=6200)
    node("worker", host="app-2", clock_skew_ms=6210)
    node("worker", host="app-3", clock_skew_ms=-7000)
    found = {row.host: (row.side, row.late) for row in servers.skewed(shown())}
    assert found == {"app-2": ("ahead of", "late"), "app-3": ("behind", "early")}


def test_stopped_processes_are_left_out_unless_asked_for_and_come_last():
    node("server", host="a", status=Node.Status.STOPPED)
    node("worker", host="z")
    assert [row.host for row in shown()] == ["z"]
    every = servers.processes(servers.mastership(NOW), now=NOW, stopped=True)
    assert [row.host for row in every] == ["z", "a"]


def test_the_report_is_told_in_words():
    row = node(
        "worker",
        report={
            "in_flight": 3,
            "pool": {"size": 12, "max": None},
            "handlers": ["a", "b"],
            "adjusted": [],
        },
    )
    assert ("Pool", "size 12") in servers.report(row)
    assert ("Handlers", "a, b") in servers.report(row)


def test_a_job_worker_tells_its_limit_and_each_tier_that_is_reduced():
    report = {
        "caps": {"total": 12},
        "used": {"total": 3},
        "in_flight": 2,
        "reduced": [
            {"what": "total", "from": 12, "to": 3, "why": "DB pool of 10 serves 3"},
            {"what": "heavy", "from": 2, "to": 0, "why": "no terraform"},
            {"what": "light", "from": "x"},
            7,
        ],
    }
    node = factories.node("jobworker", report=report)
    row = servers.process(node, servers.mastership(clock.now()), now=clock.now())
    assert row.limit
    assert row.limit.words.replace("\u00a0", " ") == "12 \u2192 3 jobs"
    assert row.limit.why == "DB pool of 10 serves 3"
    assert row.busy == 2
    assert row.reduced[1] == ("heavy", 2, 0, "no terraform")
    assert len(row.reduced) == 2


@pytest.mark.parametrize(
    "report", [{}, {"caps": 3}, {"caps": {"total": "x"}}, {"reduced": 3}]
)
def test_a_job_workers_spoilt_report_gives_no_limit(report: Any):
    node = factories.node("jobworker", report=report)
    row = servers.process(node, servers.mastership(clock.now()), now=clock.now())
    assert (row.limit, row.reduced) == (None, ())
