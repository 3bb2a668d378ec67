"""servers: the processes of an installation as the screens show them, and who is master.

Read by the overview and by Server Audit Logs. What is shown as a limit is what the
process itself reported: asked, used and why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Subquery
from django.urls import reverse

from audit import words
from scheduler.models import MasterLease, Tick
from workqueue import budget
from workqueue.models import Node
from workqueue.node import interval, stopped_after

KINDS = {
    "server": "server",
    "worker": "worker",
    "jobworker": "job worker",
    "web": "web",
}
LEASE = ("holder", "node", "term", "since", "renewed_at", "expires_at")
SKEWED = timedelta(seconds=5)  # shown as a warning from here on
ELSEWHERE = ("slots", "adjusted", "reduced")  # shown as limits, with their reason
SILENT = 1.2  # beats without a sign of life, until which nobody worries


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
    tick_at: datetime | None = None  # the newest tick of all
    tick_late: timedelta | None = None
    tick_enqueued: int | None = None

    @property
    def host(self) -> str:
        """The machine alone."""
        return self.node.partition(", ")[0]

    @property
    def pid(self) -> str:
        """Which of its processes."""
        return self.node.partition(", ")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that a process resolved."""

    what: str  # item | job
    asked: int
    used: int
    why: str  # "" where it got what it asked for

    @property
    def reduced(self) -> bool:
        """It got less than it asked for."""
        return self.used < self.asked

    @property
    def words(self) -> str:
        """'12 items', '12 → 8 items'."""
        asked = f"{self.asked:,} \u2192 " if self.reduced else ""
        return f"{asked}{words.plural(self.used, self.what)}"

    @property
    def short(self) -> str:
        """The first sentence of the reason, for a table."""
        return self.why.partition(". ")[0].rstrip(".").removeprefix("Its ")


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
    limit: Limit | None  # null: it has none to speak of
    busy: int | None  # in flight; null: it runs nothing
    stuck: int  # threads past their time limit
    connections: int  # that it may open
    loop: str  # what it says of itself beyond its status: "stopped: ... is off"
    reduced: tuple[
        tuple[str, int, int, str], ...
    ] = ()  # (cap, asked, used, why) of jobs

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
    def clock(self) -> str:
        """Its clock minus the database's: '+0.01 s'."""
        seconds = self.skew.total_seconds()
        digits = 1 if self.skewed else 2
        text = f"{seconds:+.{digits}f}".replace("-0.00", "+0.00")
        return f"{text}{words.SPACE}s".replace("-", "\u2212")

    @property
    def yes(self) -> str:
        """Under Is Master."""
        return f"Yes, term {self.term:,}" if self.term is not None else "No"

    @property
    def address(self) -> str:
        """Its page, which the reference calls View Execution Logs."""
        return reverse("admin:node", args=[self.id])


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """A machine whose clock is off, in words."""

    host: str
    off: str  # "6.2 s"
    side: str  # ahead of | behind
    late: str  # late | early: the times on its log lines


def mastership(now: datetime) -> Mastership:
    """Who is master, or that nobody is, and the newest tick. One statement."""
    newest = Tick.objects.order_by("-at")
    ticked = {
        f"tick_{name}": Subquery(newest.values(name)[:1])
        for name in ("at", "lateness_ms", "enqueued")
    }
    row = MasterLease.objects.values(*LEASE, **ticked).first()
    if row is None:
        return Mastership(
            holder=None,
            node="",
            term=0,
            since=None,
            renewed_at=None,
            expires_at=None,
            held=False,
        )
    late = row.pop("tick_lateness_ms")
    return Mastership(
        **row,
        tick_late=None if late is None else timedelta(milliseconds=late),
        held=bool(row["holder"] and row["expires_at"] and row["expires_at"] > now),
    )


def processes(
    master: Mastership, *, now: datetime, stopped: bool = False
) -> list[Process]:
    """All that live, master first; with `stopped`, also those that ended. One statement."""
    nodes = Node.objects.all() if stopped else Node.objects.alive()
    rows = [
        process(node, master, now=now) for node in nodes.order_by("host", "pid")[:1000]
    ]
    return sorted(_together(rows), key=_order)


def process(node: Node, master: Mastership, *, now: datetime) -> Process:
    """One node as it stands now."""
    is_master = master.held and master.holder == node.id
    stops_at = node.heartbeat_at + stopped_after(node.kind)
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
        limit=_limit(node),
        busy=_whole(node.report, "in_flight"),
        stuck=_whole(node.report, "stuck") or 0,
        connections=budget.may_open(node.kind, node.report),
        loop=str(node.report.get("loop", ""))
        if isinstance(node.report, Mapping)
        else "",
        reduced=_reduced(node.report),
    )


def skewed(rows: Iterable[Process]) -> list[Skew]:
    """The machines whose clocks mislead, once each."""
    found = {}
    for row in rows:
        if row.skewed and row.status != Node.Status.STOPPED:
            ahead = row.skew > timedelta()
            found[row.host] = Skew(
                host=row.host,
                off=f"{abs(row.skew).total_seconds():,.1f}{words.SPACE}s",
                side="ahead of" if ahead else "behind",
                late="late" if ahead else "early",
            )
    return list(found.values())


def report(node: Node) -> list[tuple[str, str]]:
    """What it reported, as names and texts, for its own page."""
    if not isinstance(node.report, Mapping):
        return []
    return [
        (_name(name).capitalize(), _said(value))
        for name, value in node.report.items()
        if name not in ELSEWHERE
    ]


def _name(key: object) -> str:
    """`in_flight` reads "in flight"; names of settings stay as they are typed."""
    text = str(key)
    return text if text.isupper() else text.replace("_", " ")


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_name(name)} {_said(one)}"
            for name, one in value.items()
            if one not in ("", None)
        )
    if isinstance(value, list | tuple):
        return ", ".join(_said(one) for one in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return words.UNKNOWN if value is None else str(value)


def _state(node: Node, *, is_master: bool, now: datetime) -> str:
    if node.status != Node.Status.RUNNING:
        return node.status
    if now - node.heartbeat_at > interval() * SILENT:
        return "silent"
    if node.kind == Node.Kind.SERVER:
        return "master" if is_master else "standby"
    return "running"


def _reduced(report: object) -> tuple[tuple[str, int, int, str], ...]:
    """What a job worker makes less of than was asked, cap by cap."""
    rows = report.get("reduced") if isinstance(report, Mapping) else None
    found = []
    for row in rows if isinstance(rows, list) else []:
        asked, used = _whole(row, "from"), _whole(row, "to")
        if asked is not None and used is not None:
            found.append((str(row.get("what")), asked, used, str(row.get("why", ""))))
    return tuple(found)


def _limit(node: Node) -> Limit | None:
    """The report's slots, or a job worker's total. A report of another release, or a spoilt one, gives none."""
    if node.kind == Node.Kind.JOBWORKER:
        return _total(node.report)
    slots = node.report.get("slots") if isinstance(node.report, Mapping) else None
    asked, used = _whole(slots, "asked"), _whole(slots, "used")
    if asked is None or used is None or not isinstance(slots, Mapping):
        return None
    return Limit(what="item", asked=asked, used=used, why=str(slots.get("why", "")))


def _total(report: object) -> Limit | None:
    said = report if isinstance(report, Mapping) else {}
    asked, used = _whole(said.get("caps"), "total"), _whole(said.get("used"), "total")
    if asked is None or used is None:
        return None
    whys = [why for what, _, _, why in _reduced(said) if what == "total"]
    return Limit(what="job", asked=asked, used=used, why=" ".join(whys[:1]))


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
        if (first := web.get(key)) is None:
            web[key] = row
            continue
        web[key] = replace(
            first,
            pids=tuple(sorted({*first.pids, *row.pids})),
            heartbeat_at=min(first.heartbeat_at, row.heartbeat_at),
            connections=first.connections + row.connections,
        )
    yield from web.values()


def _order(row: Process) -> tuple[bool, int, bool, str, int]:
    kinds = list(KINDS)
    place = kinds.index(row.kind) if row.kind in kinds else len(kinds)
    return (row.state == "stopped", place, row.term is None, row.host, row.pids[0])
