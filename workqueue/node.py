"""node: this process in the table of processes: register, end, judge the others.

A node is a process, not a machine: its id is random per start, so two with the same
host name and pid are two. `workqueue.beat` keeps its row fresh. What must stay true:
nobody is stopped on the word of a process whose own beats failed of late (callers ask
`Beat.may_judge` first), and stopped is not final: a beat that returns runs again.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q

from audit import clock, ledger
from workqueue.models import Node

BEAT = 0.4  # of the keep-alive: two beats may be lost before a server counts as stopped
# Workers are given longer: one long regex silences all threads of a process for seconds.
PATIENCE = {Node.Kind.SERVER: 1.0}  # of the keep-alive
PATIENCE_OTHERS = 2.4


@dataclass(slots=True, kw_only=True)
class Me:
    """This process."""

    id: UUID
    kind: str
    name: str  # "host, pid"
    started_at: datetime  # database time
    registered: float  # clock.steady() before the row was sent
    status: str = field(default=Node.Status.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedNode:
    """A process that has just been marked stopped."""

    id: UUID
    kind: str
    name: str
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """How a process of this host is."""

    id: UUID
    kind: str
    name: str
    status: str
    age_s: float  # of its last beat
    fresh: bool


def interval() -> timedelta:
    """The time between beats."""
    return settings.KEEP_ALIVE * BEAT


def stopped_after(kind: str) -> timedelta:
    """How long a process of this kind may be silent."""
    return settings.KEEP_ALIVE * PATIENCE.get(Node.Kind(kind), PATIENCE_OTHERS)


def register(*, kind: str, report: dict[str, Any]) -> Me:
    """Write the row of this process, and that it started."""
    node = _row(id=uuid4(), kind=kind, report=report)
    with transaction.atomic():
        sent = clock.steady()
        node.save(force_insert=True)
        clock.sample(database=node.started_at, sent=sent, received=clock.steady())
        me = Me(
            id=node.id,
            kind=kind,
            name=str(node),
            started_at=node.started_at,
            registered=sent,
        )
        _tell(me, "started", f"version {node.version}")
    return me


def come_back(me: Me, *, report: dict[str, Any]) -> None:
    """Run again after others marked this process stopped, or its row was lost."""
    with transaction.atomic():
        found = Node.objects.select_for_update().filter(pk=me.id).first()
        if found is None:
            _row(id=me.id, kind=me.kind, report=report).save(force_insert=True)
            _tell(me, "returned", "its row was gone")
        elif found.status == Node.Status.STOPPED:
            Node.objects.filter(pk=me.id).update(
                status=me.status, stopped_at=None, heartbeat_at=clock.DatabaseNow()
            )
            _tell(me, "returned", f"silent since {_at(found.heartbeat_at)}")


def end(me: Me, *, status: str = Node.Status.STOPPED, text: str = "") -> None:
    """Say that this process drains, or that it ended in order. Stop its beat first."""
    me.status = status
    stopped = status == Node.Status.STOPPED
    with transaction.atomic():
        Node.objects.filter(pk=me.id).update(
            status=status, stopped_at=clock.DatabaseNow() if stopped else None
        )
        _tell(me, status, text)


def mark_silent() -> list[StoppedNode]:
    """Mark the processes stopped that have been silent for too long.

    Call only when Beat.may_judge(): after an outage the first process back would
    otherwise declare all others dead.
    """
    if not (ids := list(_silent().values_list("id", flat=True))):
        return []
    with transaction.atomic():
        # Looked at again under the lock: a beat may have come in between.
        rows = list(_silent().filter(pk__in=ids).select_for_update())
        Node.objects.filter(pk__in=[row.pk for row in rows]).update(
            status=Node.Status.STOPPED, stopped_at=clock.DatabaseNow()
        )
        for row in rows:
            limit = stopped_after(row.kind).total_seconds()
            text = f"no beat since {_at(row.heartbeat_at)}; its limit is {limit:g} s"
            ledger.node_event(
                node_id=row.id, node=str(row), kind=row.kind, type="silent", text=text
            )
    return [
        StoppedNode(
            id=row.id, kind=row.kind, name=str(row), heartbeat_at=row.heartbeat_at
        )
        for row in rows
    ]


def on_this_host(*, kinds: Sequence[str]) -> list[Pulse]:
    """The newest process of each kind here that is not stopped.

    Only the newest: in a container that was restarted after a crash, the row of the
    process before it is not stopped yet.
    """
    here = Node.objects.alive().filter(host=_host(), kind__in=kinds)
    newest = {row.kind: row for row in here.order_by("started_at")}
    now = here.aggregate(now=Max(clock.DatabaseNow()))["now"]
    return [
        Pulse(
            id=row.id,
            kind=row.kind,
            name=str(row),
            status=row.status,
            age_s=(now - row.heartbeat_at).total_seconds(),
            fresh=now - row.heartbeat_at < stopped_after(row.kind),
        )
        for row in newest.values()
    ]


def called(rows: Sequence[Node]) -> list[str]:
    """What to call each: its host, with the pid where one host has several of them."""
    hosts = [row.host for row in rows]
    return [row.host if hosts.count(row.host) == 1 else str(row) for row in rows]


def as_moment(value: Any) -> datetime:
    """An instant as raw SQL returns it: SQLite gives a text, or no zone; it is UTC."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _silent() -> Any:
    """Processes whose last beat is older than their kind is given."""
    late = Q()
    for kind in Node.Kind:
        late |= Q(kind=kind, heartbeat_at__lt=clock.earlier(stopped_after(kind)))
    return Node.objects.alive().filter(late)


def _row(*, id: UUID, kind: str, report: dict[str, Any]) -> Node:
    return Node(
        id=id,
        kind=kind,
        host=_host(),
        pid=os.getpid(),
        version=settings.VERSION[:40],
        started_at=clock.DatabaseNow(),
        heartbeat_at=clock.DatabaseNow(),
        report=report,
    )


def _host() -> str:
    return socket.gethostname()[:200]


def _tell(me: Me, type: str, text: str) -> None:
    ledger.node_event(node_id=me.id, node=me.name, kind=me.kind, type=type, text=text)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
