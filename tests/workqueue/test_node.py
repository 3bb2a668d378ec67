"""Processes: each a row of its own, judged by the database's clock, and never for good."""

import os
import socket
import time
from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from audit.models import NodeEvent
from tests import factories
from workqueue import node
from workqueue.models import Node

pytestmark = pytest.mark.django_db


def silent_for(seconds: float, kind: str = "worker", **values: Any) -> Node:
    moment = clock.now() - timedelta(seconds=seconds)
    return factories.node(kind, heartbeat_at=moment, **values)


def events(of: Any) -> list[str]:
    return list(
        NodeEvent.objects.filter(
            node_id=of.pk if isinstance(of, Node) else of.id
        ).values_list("type", flat=True)
    )


@pytest.fixture(autouse=True)
def keep_alive(settings: Any) -> None:
    settings.KEEP_ALIVE = timedelta(seconds=25)


def test_beats_come_every_ten_seconds_and_workers_are_given_sixty() -> None:
    assert node.interval() == timedelta(seconds=10)
    assert node.stopped_after("server") == timedelta(seconds=25)
    for kind in ("worker", "jobworker", "web"):
        assert node.stopped_after(kind) == timedelta(seconds=60)


def test_registering_writes_a_row_and_its_first_event() -> None:
    me = node.register(kind="worker", report={"slots": 10})
    row = Node.objects.get(pk=me.id)
    assert (row.host, row.pid, row.kind, row.status) == (
        socket.gethostname(),
        os.getpid(),
        "worker",
        "running",
    )
    assert row.report == {"slots": 10}
    assert str(row) == me.name
    assert row.started_at == me.started_at
    assert events(me) == ["started"]


def test_two_processes_of_the_same_host_and_pid_are_two() -> None:
    one, other = (
        node.register(kind="server", report={}),
        node.register(kind="server", report={}),
    )
    assert one.name == other.name
    assert one.id != other.id
    assert Node.objects.count() == 2


def test_a_process_ends_in_order_and_says_so() -> None:
    me = node.register(kind="worker", report={})
    node.end(me, status=Node.Status.DRAINING, text="SIGTERM")
    assert Node.objects.get(pk=me.id).status == "draining"
    node.end(me, text="drained")
    row = Node.objects.get(pk=me.id)
    assert (row.status, row.stopped_at is not None) == ("stopped", True)
    assert events(me) == ["started", "draining", "stopped"]


@pytest.mark.parametrize(
    ("kind", "limit"), [("server", 25), ("worker", 60), ("jobworker", 60), ("web", 60)]
)
def test_a_process_is_marked_stopped_after_its_kinds_silence_and_not_before(
    kind: str, limit: float
) -> None:
    late, in_time = silent_for(limit + 2, kind), silent_for(limit - 2, kind)
    (marked,) = node.mark_silent()
    assert (marked.id, marked.name, marked.kind) == (late.pk, str(late), kind)
    late.refresh_from_db()
    in_time.refresh_from_db()
    assert (late.status, in_time.status) == ("stopped", "running")
    assert late.stopped_at is not None
    event = NodeEvent.objects.get()
    assert event.type == "silent"
    assert (
        event.text
        == f"no beat since {late.heartbeat_at:%Y-%m-%d %H:%M:%S} UTC; its limit is {limit} s"
    )


def test_a_draining_process_that_falls_silent_is_marked_too_and_a_stopped_one_only_once() -> (
    None
):
    silent_for(100, status="draining")
    assert len(node.mark_silent()) == 1
    assert node.mark_silent() == []
    assert NodeEvent.objects.count() == 1


def test_a_beat_between_the_look_and_the_mark_saves_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = silent_for(100)
    looked = node._silent

    def and_then_it_beats() -> Any:
        found = looked()
        list(found)
        monkeypatch.setattr(node, "_silent", looked)
        real = found.values_list

        def values_list(*names: str, **more: Any) -> Any:
            ids = list(real(*names, **more))
            Node.objects.filter(pk=late.pk).update(heartbeat_at=clock.DatabaseNow())
            return ids

        found.values_list = values_list
        return found

    monkeypatch.setattr(node, "_silent", and_then_it_beats)
    assert node.mark_silent() == []
    late.refresh_from_db()
    assert late.status == "running"
    assert not NodeEvent.objects.exists()


@pytest.mark.postgresql
@pytest.mark.parametrize("hours", [-72, -1, 1, 72])
def test_a_wrong_clock_of_the_judge_stops_nobody(
    hours: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent_for(5, "server")
    wrong = time.time() + hours * 3600
    monkeypatch.setattr(time, "time", lambda: wrong)
    assert node.mark_silent() == []


def test_stopped_is_not_final() -> None:
    me = node.register(kind="worker", report={})
    Node.objects.filter(pk=me.id).update(
        heartbeat_at=clock.now() - timedelta(minutes=5)
    )
    node.mark_silent()
    node.come_back(me, report={})
    row = Node.objects.get(pk=me.id)
    assert (row.status, row.stopped_at) == ("running", None)
    assert events(me) == ["started", "silent", "returned"]


def test_a_draining_process_comes_back_draining() -> None:
    me = node.register(kind="worker", report={})
    node.end(me, status=Node.Status.DRAINING)
    Node.objects.update(status="stopped")
    node.come_back(me, report={})
    assert Node.objects.get().status == "draining"


def test_a_process_whose_row_was_deleted_writes_it_again() -> None:
    me = node.register(kind="worker", report={})
    Node.objects.all().delete()
    node.come_back(me, report={"slots": 3})
    row = Node.objects.get()
    assert (row.pk, row.report, row.status) == (me.id, {"slots": 3}, "running")
    assert events(me) == ["started", "returned"]


def test_of_this_host_the_newest_of_each_kind_counts() -> None:
    here = socket.gethostname()
    old = clock.now() - timedelta(hours=1)
    silent_for(300, host=here, started_at=old)  # before the crash; not judged yet
    fresh = factories.node("worker", host=here)
    factories.node("worker", host="another")
    factories.node("server", host=here)
    (found,) = node.on_this_host(kinds=["worker", "jobworker"])
    assert (found.id, found.fresh) == (fresh.pk, True)
    assert found.age_s < 10
    assert not node.on_this_host(kinds=["web"])


def test_a_silent_process_of_this_host_is_not_fresh() -> None:
    silent_for(61, host=socket.gethostname())
    (found,) = node.on_this_host(kinds=["worker"])
    assert not found.fresh


def test_an_instant_of_raw_sql_is_aware_on_both_databases() -> None:
    assert (
        node.as_moment("2026-11-29 10:00:00.123456").isoformat()
        == "2026-11-29T10:00:00.123456+00:00"
    )
    now = clock.now()
    assert node.as_moment(now) is now
    # As SQLite's driver gives a column that says it is a datetime: whatever the server's
    # zone is, it is UTC.
    assert node.as_moment(now.replace(tzinfo=None)) == now


def test_a_process_is_called_by_its_host_and_by_its_pid_where_there_are_several() -> (
    None
):
    rows = [
        Node(host="app-1", pid=1),
        Node(host="app-2", pid=2),
        Node(host="app-2", pid=3),
    ]
    assert node.called(rows) == ["app-1", "app-2, 2", "app-2, 3"]
