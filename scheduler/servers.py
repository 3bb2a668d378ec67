"""servers: the processes of an installation as the screens show them, and who is master.

Read by the overview and by Server Audit Logs. What is shown as a limit is what the
process itself reported: asked, used and why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from scheduler.models import MasterLease
from workqueue.models import Node

KINDS = {"server": "server", "worker": "worker", "jobworker": "job worker", "web": "web"}
SKEWED = timedelta(seconds=5)  # shown as a warning from here on
SILENT = 1.2  # beats without a sign of life, until which nobody worries
BEAT = 0.4  # of keep-alive
WORKER_PATIENCE = 2.4  # of keep-alive: one long regex silences a process's threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Mastership:
    """The lease as it stands at one moment."""

    holder: UUID | None  # null: nobody
    node: str  # host, pid of the holder, or of the last one
    term: int
    since: datetime | None  # when the term began
    renewed_at: datetime | None
    expires_at: datetime | None
    held: bool  # somebody is master now

    @property
    def host(self) -> str:
        """The machine alone."""
        return self.node.partition(",")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that a process resolved."""

    what: str  # items | jobs
    asked: int
    used: int
    why: str  # "" where it got what it asked for

    @property
    def reduced(self) -> bool:
        """It got less than it asked for."""
        return self.used < self.asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A row of the nodes' table."""

    id: UUID
    kind: str  # server | worker | jobworker | web
    host: str
    pids: tuple[int, ...]  # several: web processes of one machine
    state: str  # master | standby | running | draining | silent | stopped
    status: str  # Node.Status
    term: int | None  # of the master
    heartbeat_at: datetime
    stopped_at: datetime | None
    stops_at: datetime  # when it counts as stopped unless it beats again
    started_at: datetime
    version: str
    skew: timedelta
    limits: tuple[Limit, ...]
    busy: int | None  # in flight; null: it runs nothing
    stuck: int  # threads past their time limit

    @property
    def name(self) -> str:
        """'server', 'web, 2 processes'."""
        word = KINDS.get(self.kind, self.kind)
        return f"{word}, {len(self.pids)} processes" if len(self.pids) > 1 else word

    @property
    def skewed(self) -> bool:
        """Its clock is so far off that its own log lines mislead."""
        return abs(self.skew) > SKEWED

    @property
    def limit(self) -> Limit | None:
        """The limit that its slots are drawn with."""
        return self.limits[0] if self.limits else None


def mastership(now: datetime) -> Mastership:
    """Who is master, or that nobody is. One statement."""
    row = MasterLease.objects.first() or MasterLease()
    held = bool(row.holder and row.expires_at and row.expires_at > now)
    return Mastership(
        holder=row.holder,
        node=row.node,
        term=row.term,
        since=row.since,
        renewed_at=row.renewed_at,
        expires_at=row.expires_at,
        held=held,
    )


def processes(master: Mastership, *, now: datetime, stopped: bool = False) -> list[Process]:
    """All that live, master first; with `stopped`, also those that ended. One statement."""
    nodes = Node.objects.all() if stopped else Node.objects.alive()
    rows = [process(node, master, now=now) for node in nodes.order_by("host", "pid")[:1000]]
    return sorted(_together(rows), key=_order)


def process(node: Node, master: Mastership, *, now: datetime) -> Process:
    """One node as it stands now."""
    is_master = master.held and master.holder == node.id
    stops_at = node.heartbeat_at + _patience(node.kind)
    return Process(
        id=node.id,
        kind=node.kind,
        host=node.host,
        pids=(node.pid,),
        state=_state(node, is_master=is_master, now=now),
        status=node.status,
        term=master.term if is_master else None,
        heartbeat_at=node.heartbeat_at,
        stopped_at=node.stopped_at,
        stops_at=stops_at,
        started_at=node.started_at,
        version=node.version,
        skew=timedelta(milliseconds=node.clock_skew_ms),
        limits=_limits(node),
        busy=_whole(node.report, "in_flight"),
        stuck=_whole(node.report, "stuck") or 0,
    )


def _state(node: Node, *, is_master: bool, now: datetime) -> str:
    if node.status != Node.Status.RUNNING:
        return node.status
    if now - node.heartbeat_at > settings.KEEP_ALIVE * BEAT * SILENT:
        return "silent"
    if node.kind == Node.Kind.SERVER:
        return "master" if is_master else "standby"
    return "running"


def _patience(kind: str) -> timedelta:
    alive: timedelta = settings.KEEP_ALIVE
    return alive if kind == Node.Kind.SERVER else alive * WORKER_PATIENCE


def _limits(node: Node) -> tuple[Limit, ...]:
    """The report's limits. A report of another release, or a spoilt one, gives none."""
    found = node.report.get("limits") if isinstance(node.report, Mapping) else None
    return tuple(_read(found)) if isinstance(found, Sequence) and not isinstance(found, str) else ()


def _read(found: Iterable[object]) -> Iterable[Limit]:
    for one in found:
        if not isinstance(one, Mapping):
            continue
        asked, used = _whole(one, "asked"), _whole(one, "used")
        if asked is not None and used is not None:
            yield Limit(what=str(one.get("what", "items")), asked=asked, used=used, why=str(one.get("why", "")))


def _whole(report: object, key: str) -> int | None:
    value = report.get(key) if isinstance(report, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _together(rows: Iterable[Process]) -> Iterable[Process]:
    """Web processes of one machine and release as one row, with the oldest beat."""
    web: dict[tuple[str, str, str], Process] = {}
    for row in rows:
        if row.kind != Node.Kind.WEB:
            yield row
            continue
        key = (row.host, row.version, row.state)
        first = web.get(key, row)
        pids = tuple(sorted({*first.pids, *row.pids}))
        web[key] = replace(first, pids=pids, heartbeat_at=min(first.heartbeat_at, row.heartbeat_at))
    yield from web.values()


def _order(row: Process) -> tuple[bool, int, bool, str, int]:
    kinds = list(KINDS)
    place = kinds.index(row.kind) if row.kind in kinds else len(kinds)
    return (row.state == "stopped", place, row.term is None, row.host, row.pids[0])
