"""connection_budget: the connections that all live processes may open, against what the server allows.

By what each says with its beat: how large its pool may become, and what stands outside
of it. What may be opened counts, not what is open: a full pool must find its place.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.utils.safestring import SafeString

from audit import drawings
from jobworker import caps, sql
from workqueue import budget
from workqueue.models import Node

NEARLY = 0.9  # of the limit; from here on it is a warning
KINDS: dict[str, str] = {
    Node.Kind.WEB: "web",
    Node.Kind.SERVER: "scheduler",
    Node.Kind.WORKER: "worker",
    Node.Kind.JOBWORKER: "job worker",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process with what it may open."""

    kind: str  # of Node.Kind
    host: str
    pid: int
    pool: int
    outside: int  # beat, listener, notifier
    heartbeat_at: datetime

    @property
    def word(self) -> str:
        """What kind it is, as operators read it."""
        return KINDS.get(self.kind, self.kind)

    @property
    def sum(self) -> int:
        """All that it may open."""
        return self.pool + self.outside


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a job worker would need to run what was asked of it."""

    host: str
    jobs: int  # asked
    used: int  # awake, with the pool it has
    pool: int  # that it would need
    more: int  # connections than it has


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """All processes together."""

    processes: tuple[Process, ...]
    wishes: tuple[Wish, ...]
    maximum: int | None  # max_connections; None: SQLite
    opened: int  # now, by anybody

    @property
    def wanted(self) -> int:
        """What may be opened in all."""
        return sum(each.sum for each in self.processes)

    @property
    def limit(self) -> int:
        """What the processes may open together."""
        return max(0, (self.maximum or 0) - budget.KEPT_BY_SERVER)

    @property
    def spare(self) -> int:
        """What is left; negative: too few."""
        return self.limit - self.wanted

    @property
    def state(self) -> str:
        """Of the whole: "" | near | over."""
        if self.maximum is None or self.wanted <= self.limit * NEARLY:
            return ""
        return "over" if self.spare < 0 else "near"

    @property
    def missing(self) -> int:
        """How many too few."""
        return max(0, -self.spare)

    @property
    def web(self) -> int:
        """How many web processes there are: each has a pool of its own."""
        return sum(each.kind == Node.Kind.WEB for each in self.processes)

    @property
    def jobworkers(self) -> int:
        """How many job workers there are."""
        return sum(each.kind == Node.Kind.JOBWORKER for each in self.processes)

    @property
    def per_job(self) -> int:
        """Connections that one more job awake costs."""
        return caps.PER_JOB

    @property
    def drawn(self) -> SafeString:
        """What each kind may take, what is taken, and the limit."""
        shares = [
            (word, sum(each.sum for each in self.processes if each.kind == kind))
            for kind, word in KINDS.items()
        ]
        return drawings.budget(
            [one for one in shares if one[1]], opened=self.opened, limit=self.limit
        )


def look() -> Budget:
    """Two statements."""
    alive = list(Node.objects.alive().order_by("kind", "host", "pid"))
    maximum, opened = _server()
    return Budget(
        processes=tuple(map(_process, alive)),
        wishes=tuple(filter(None, map(_wish, alive))),
        maximum=maximum,
        opened=opened,
    )


def _server() -> tuple[int | None, int]:
    if connection.vendor != "postgresql":
        return None, 0
    with connection.cursor() as cursor:
        cursor.execute(sql.CONNECTIONS)
        maximum, opened = cursor.fetchone()
    return maximum, opened


def _process(node: Node) -> Process:
    pool, outside = budget.share(node.kind, node.report)
    return Process(
        kind=node.kind,
        host=node.host,
        pid=node.pid,
        pool=pool,
        outside=outside,
        heartbeat_at=node.heartbeat_at,
    )


def _wish(node: Node) -> Wish | None:
    """None: it runs what was asked, or has no pool to speak of."""
    said = node.report if isinstance(node.report, dict) else {}
    asked, pool = said.get("caps"), _whole(said.get("pool"))
    jobs = _whole(asked.get("total")) if isinstance(asked, dict) else None
    if node.kind != Node.Kind.JOBWORKER or pool is None or jobs is None:
        return None
    used, wanted = caps.serves(pool), caps.pool_for(jobs)
    if used >= jobs:
        return None
    return Wish(host=node.host, jobs=jobs, used=used, pool=wanted, more=wanted - pool)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
