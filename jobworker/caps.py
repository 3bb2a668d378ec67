"""caps: how many jobs a worker runs at once, clamped to what its connection pool serves.

The caps are live settings; the pool is environment, since it must be known before the
database can be asked. So the pool wins, and the status card says by how much and why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workqueue import connections
from workqueue.bounds import Adjustment, Declaration, Key, clamp

POOL_KEPT = 4  # connections of the pool for the worker's own threads
PER_JOB = 2  # connections that a job awake may hold at once
THREADS_PER_CAP = 4  # executor threads per job of the caps, where nobody says otherwise

DECLARATION = Declaration(
    name="Job Worker",
    sentence="How many long jobs one job worker runs at once. The caps may add up to more than the total: they limit the mix, the total limits the sum.",
    page="job_worker",
    keys=(
        Key(
            name="heavy",
            default=2,
            lowest=0,
            high=500,
            unit="jobs",
            sentence="Cluster and database provisions, Packer builds.",
        ),
        Key(
            name="medium",
            default=1,
            lowest=0,
            high=500,
            unit="jobs",
            sentence="Shown as “mixed”: jobs that work now and then.",
        ),
        Key(
            name="light",
            default=3,
            lowest=0,
            high=500,
            unit="jobs",
            sentence="Shown as “poll-only”: exports and sweeps that mostly wait.",
        ),
        Key(
            name="total",
            default=3,
            lowest=1,
            high=500,
            unit="jobs",
            sentence="Never more jobs than this, whatever the mix.",
        ),
        Key(
            name="WORKER_EXECUTOR_THREADS",
            default=0,
            lowest=0,
            high=1000,
            unit="threads",
            sentence="0: enough for the caps. Leave it unless jobs stay at 0 %. Applied when a worker starts.",
        ),
    ),
)
RESTART = "WORKER_EXECUTOR_THREADS"  # the one key that is not live


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The setting as the engine uses it."""

    tiers: Mapping[str, int]  # heavy, medium, light
    total: int
    executor_threads: int  # 0: derive from the caps

    def as_values(self) -> dict[str, int]:
        """By the names of its keys."""
        return {**self.tiers, "total": self.total, RESTART: self.executor_threads}

    def ceiling(self) -> int:
        """The threads that a worker which starts now may have."""
        derived = THREADS_PER_CAP * sum(self.tiers.values()) + 1
        return self.executor_threads or derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """Less than was asked for, and why."""

    what: str  # total | heavy | medium | light
    asked: int
    used: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one process makes of the caps."""

    caps: Caps
    total: int  # jobs
    usable: int  # jobs awake at once; 0: stuck threads hold what the pool has
    threads: int  # ceiling; applied when the process started
    reduced: tuple[Reduction, ...]


def resolve(stored: object) -> tuple[Caps, tuple[Adjustment, ...]]:
    """What to use of what is stored, and where that differs from it. Never raises."""
    used, adjusted = clamp(stored, declaration=DECLARATION)
    tiers = {tier: used[tier] for tier in ("heavy", "medium", "light")}
    caps = Caps(tiers=tiers, total=used["total"], executor_threads=used[RESTART])
    return caps, adjusted


def serves(pool: int, *, stuck: int = 0) -> int:
    """The jobs awake that a pool of so many connections serves, at least 1.

    `stuck`: threads that may each keep a connection. They may leave none for a job: 0.
    """
    return max(0 if stuck else 1, (pool - POOL_KEPT - stuck) // PER_JOB)


def pool_for(jobs: int) -> int:
    """The connections that a pool needs to serve so many jobs awake."""
    return PER_JOB * jobs + POOL_KEPT


def limits(
    caps: Caps, *, threads: int, stuck: int = 0, lacking: Sequence[Reduction] = ()
) -> Limits:
    """Clamp the caps to this process.

    `threads`: its ceiling. `stuck`: of them those of ended jobs. `lacking`: tiers it cannot serve.
    """
    pool = connections.size()
    usable = caps.total if pool is None else min(caps.total, serves(pool, stuck=stuck))
    total = min(caps.total, threads)
    reduced = []
    if pool is not None and usable < caps.total:
        why = f"DB pool of {pool} serves {usable} concurrent job(s)"
        if usable < serves(pool):
            why += f" beside {stuck} stuck thread(s), each with a connection; "
            why += (
                "restart this worker"
                if usable
                else "it restarts once its jobs have ended"
            )
        else:
            why += f"; raise DB_POOL_SIZE / DB_MAX_OVERFLOW to use {caps.total}"
        reduced.append(Reduction(what="total", asked=caps.total, used=usable, why=why))
    if total < min(caps.total, usable):
        why = f"{threads} executor thread(s); raise WORKER_EXECUTOR_THREADS and restart to use {caps.total}"
        reduced.append(Reduction(what="total", asked=caps.total, used=total, why=why))
    return Limits(
        caps=caps,
        total=total,
        usable=min(usable, total),
        threads=threads,
        reduced=(*reduced, *lacking),
    )


def as_rows(reduced: Sequence[Reduction]) -> list[dict[str, Any]]:
    """For the node's report."""
    return [
        {"what": one.what, "from": one.asked, "to": one.used, "why": one.why}
        for one in reduced
    ]
