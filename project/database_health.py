"""database_health: the database as the overview shows it: connections, what holds vacuum back, dead rows.

One statement. Every process's pool is in the budget, whether it is filled or not: what
may be opened is what the server must have room for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.db import connection
from django.utils.safestring import SafeString

from audit import drawings, words
from project import sql
from scheduler.servers import KINDS, Process
from workqueue import budget

LONG = timedelta(minutes=5)  # a transaction holds vacuum back from here on
MANY_DEAD = 10_000  # rows of the hot table, and more dead than live ones
UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What keeps vacuum from removing dead rows, oldest first."""

    kind: str  # session | prepared | slot
    pid: int | None
    name: str  # role, or name of the prepared transaction or slot
    program: str
    state: str
    since: datetime | None  # null: of a slot
    query: str
    held: int  # transactions since

    @property
    def cure(self) -> str:
        """What an operator types to end it."""
        name = self.name.replace("'", "''")
        return sql.CURES[self.kind].format(pid=self.pid, name=name)

    @property
    def what(self) -> str:
        """'One transaction', as the start of a sentence."""
        return {
            "session": "One transaction",
            "prepared": "A prepared transaction",
            "slot": "A replication slot",
        }[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Connections: what may be opened, what is open, what there is."""

    wanted: int
    open: int
    limit: int  # max_connections less the reserved
    maximum: int
    reserved: int
    processes: int
    drawn: SafeString

    @property
    def spare(self) -> int:
        """Connections that nobody of ours may claim; negative: too few."""
        return self.limit - self.wanted

    @property
    def missing(self) -> int:
        """How many too few there are."""
        return max(0, -self.spare)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The database at one moment."""

    name: str  # "PostgreSQL 17.6, 41 GB"
    live: int | None = None  # rows of the hot table; null: SQLite
    dead: int = 0
    vacuumed_at: datetime | None = None
    holder: Holder | None = None  # null: nothing holds vacuum back
    hidden: int = 0  # sessions that this role may not look at
    free: str = ""  # of SQLite's file
    budget: Budget | None = None  # null: SQLite

    @property
    def bloated(self) -> bool:
        """There are so many dead rows that claims slow down."""
        return self.dead > max(MANY_DEAD, self.live or 0)


def look(alive: Sequence[Process], *, now: datetime) -> Health:
    """Ask the server. One statement."""
    postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute(sql.HEALTH if postgresql else sql.FILE_HEALTH)
        row = cursor.fetchone()
    if not postgresql:
        version, length, free = row
        return Health(name=f"SQLite {version}, {size(length)}", free=size(free))
    version, length, maximum, reserved, opened, hidden = row[:6]
    holder = Holder(**dict(zip(Holder.__slots__, row[9:], strict=True)))
    return Health(
        name=f"PostgreSQL {version.partition(' ')[0]}, {size(length)}",
        live=row[6] or 0,
        dead=row[7] or 0,
        vacuumed_at=row[8],
        holder=holder if _holds(holder, now) else None,
        hidden=hidden,
        budget=_budget(alive, opened, maximum=maximum, reserved=reserved),
    )


def size(length: int) -> str:
    """41 GB, 1.2 MB: two figures are enough."""
    value, unit = float(length), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 1 if unit and value < 10 else 0
    return f"{value:.{digits}f}{words.SPACE}{UNITS[unit]}"


def _holds(holder: Holder, now: datetime) -> bool:
    """A slot holds as long as it is there; a transaction from LONG on."""
    if not holder.kind:
        return False
    return holder.since is None or now - holder.since >= LONG


def _budget(
    alive: Sequence[Process], opened: int, *, maximum: int, reserved: int
) -> Budget:
    shares = [
        (KINDS.get(kind, kind), sum(row.connections for row in rows))
        for kind, rows in groupby(sorted(alive, key=lambda row: row.kind), _kind)
    ]
    # As the job worker's page of the budget reckons.
    reserved = max(reserved, budget.KEPT_BY_SERVER)
    wanted, limit = sum(count for _, count in shares), maximum - reserved
    return Budget(
        wanted=wanted,
        open=opened,
        limit=limit,
        maximum=maximum,
        reserved=reserved,
        processes=sum(len(row.pids) for row in alive),
        drawn=drawings.budget(shares, opened=opened, limit=limit),
    )


def _kind(row: Process) -> str:
    return row.kind
