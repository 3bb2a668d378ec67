"""overview: the first page: is there a master, is work moving, what failed, what is reduced.

A member of a tenant sees the work of that tenant; the platform's staff sees all of
it, and the processes. At most twelve statements, none that grows with history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import F, OuterRef, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from audit import drawings, failures, page, queries, words
from audit.rows import ChangeRow, FailureRow, RunFilter
from jobworker import depths
from project import database_health, first_run
from scheduler import servers, terms
from scheduler.models import Schedule
from scheduler.servers import Mastership, Process
from workqueue import depth, live, names, registry
from workqueue.live import Live
from workqueue.models import Node, WorkItem
from workqueue.models.item import WorkItemQuerySet

DAY = timedelta(days=1)
MINUTES = 60  # of the drawing
MOST_FAILURES = 12  # groups
MOST_CHANGES = 5
NO_TENANT = "This account belongs to no tenant. An administrator of the platform can add it to one under Memberships."


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Live items, counted as far as a page can wait for."""

    waiting: str
    executing: str
    held: str  # "" where none
    oldest: datetime | None  # since when the oldest waiting item is due
    any_waits: bool

    @property
    def waits(self) -> str:
        """'1 item waits', '37 items wait'."""
        return (
            f"{self.waiting} item waits"
            if self.waiting == "1"
            else f"{self.waiting} items wait"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """Something works, but not as asked."""

    title: str  # "Worker on queue-2 runs 8 items, not 12."
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Failures of one handler with one error."""

    title: str
    error: str
    outcome: str
    runs: str
    tenants: str  # "3 tenants", or the only one
    drawn: SafeString  # by hour
    last: datetime
    address: str  # the runs themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What an operator did, in one line."""

    at: datetime
    what: str
    verb: str
    who: str


def context(request: HttpRequest, *, now: datetime) -> dict[str, Any]:
    """All that the page shows."""
    seen = page.tenants(request)
    live_work = _live_work(seen, now=now)
    queue = _queue(live_work)
    counts = queries.throughput(minutes=MINUTES, tenants=seen, now=now)
    shared = {
        "queue": queue,
        "jobs": depths.of(live_work),
        "finished_minute": counts[-1],
        "finished_hour": sum(counts),
        "throughput": drawings.per_minute(counts, now=now),
        "failures": [
            _failure(row)
            for row in queries.failures_since(
                now - DAY, tenants=seen, now=now, limit=MOST_FAILURES
            )
        ],
        "changes": [
            _change(row)
            for row in queries.changes(
                tenants=seen, since=now - DAY, limit=MOST_CHANGES
            )
        ],
    }
    if seen is not None:
        return {**shared, "lead": _lead_of_tenant(queue) if seen else NO_TENANT}
    found = {**shared, **_platform(queue, now=now)}
    return found if any(counts) or _has_run() else {**found, **_first(found, now=now)}


def _has_run() -> bool:
    """Asked only when nothing ended within the hour."""
    return bool(queries.runs(RunFilter(), tenants=None, limit=1).rows)


def _first(found: dict[str, Any], *, now: datetime) -> dict[str, Any]:
    """A new installation: what it still lacks, in place of empty figures."""
    first = first_run.steps(found["master"], found["processes"], now=now)
    age = now - min((step.at for step in first.steps if step.at), default=now)
    old = words.duration(timedelta(seconds=round(age.total_seconds())))
    lead = f"This installation is {old} old. {first.sentence}"
    return {"title": "Welcome to Millrace", "lead": lead, "first": first}


def _platform(queue: Queue, *, now: datetime) -> dict[str, Any]:
    """What only the platform's staff sees."""
    master = servers.mastership(now)
    rows = servers.processes(master, now=now)
    alive = [row for row in rows if row.status != Node.Status.STOPPED]
    known = live.current()
    reduced = [*_reduced(alive), *_adjusted(known)]
    return {
        "master": master,
        "processes": rows,
        "servers": sum(row.kind == Node.Kind.SERVER for row in alive),
        "standby": [
            row
            for row in alive
            if row.kind == Node.Kind.SERVER and row.id != master.holder
        ],
        "alive": sum(len(row.pids) for row in alive),
        "silent": sum(len(row.pids) for row in alive if row.state == "silent"),
        "slots": sum(
            row.limit.used
            for row in alive
            if row.limit and row.kind == Node.Kind.WORKER
        ),
        "jobworkers": sum(row.kind == Node.Kind.JOBWORKER for row in alive),
        "job_slots": sum(
            row.limit.used
            for row in alive
            if row.limit and row.kind == Node.Kind.JOBWORKER
        ),
        "terms": terms.history(master, span=terms.SPANS[0], now=now),
        "election_due": settings.KEEP_ALIVE + timedelta(seconds=2),
        "reduced": reduced,
        "health": database_health.look(alive, now=now),
        "lead": _lead(queue, master, alive, known, reduced, now=now),
    }


def _live_work(seen: frozenset[int] | None, *, now: datetime) -> dict[str, Any]:
    """Items and jobs that have not ended, counted in one statement."""
    items = (
        WorkItem.objects.all()
        if seen is None
        else WorkItem.objects.filter(tenant_id__in=seen)
    )
    return depth.read(
        {
            **depth.by_status(items),
            **depths.by_tier(seen),
            "oldest": _oldest(items.pending(), now=now),
        }
    )


def _oldest(pending: WorkItemQuerySet, *, now: datetime) -> Subquery:
    """When the item became due that waits longest. By handler, since the index starts with it."""
    mine = pending.filter(handler=OuterRef("key"), not_before__lte=now)
    first = mine.order_by("not_before", "id").values("not_before")[:1]
    of_handlers = Schedule.objects.annotate(first=Subquery(first))
    return Subquery(
        of_handlers.order_by(F("first").asc(nulls_last=True)).values("first")[:1]
    )


def _queue(found: dict[str, Any]) -> Queue:
    held = found[WorkItem.Status.HELD]
    waiting = found[WorkItem.Status.PENDING]
    return Queue(
        waiting=depth.shown(waiting),
        executing=depth.shown(found[WorkItem.Status.EXECUTING]),
        held=depth.shown(held) if held else "",
        oldest=found["oldest"],
        any_waits=waiting > 0,
    )


def _lead(
    queue: Queue,
    master: Mastership,
    alive: Sequence[Process],
    known: Live,
    reduced: Sequence[Reduced],
    *,
    now: datetime,
) -> str:
    """The first sentence of the page: is it moving? And what is not as asked."""
    workers = [
        row
        for row in alive
        if row.kind == Node.Kind.WORKER and row.state in {"running", "silent"}
    ]
    paused = sum(row.holds(now) for row in known.pauses)
    rest = [
        f"{words.plural(paused, 'pause')} {'is' if paused == 1 else 'are'} in force"
    ] * bool(paused)
    rest += [
        f"{words.plural(len(reduced), 'limit')} {'is' if len(reduced) == 1 else 'are'} reduced"
    ] * bool(reduced)
    if not master.held:
        first = "No master: nothing is enqueued until a server node takes the lease."
    elif not workers:
        first = f"No worker is alive: {queue.waits}."
    elif not known.policy.start_workers:
        first = f"Work stands still: START_WORKERS_ON_MASTER is off, {queue.waits}."
    elif any(row.scope == "everything" and row.holds(now) for row in known.pauses):
        first = f"Work stands still: everything is paused, {queue.waits}."
    elif queue.oldest is None:
        what = "what waits is not due yet" if queue.any_waits else "nothing waits"
        first = f"Work is moving: {what}."
    else:
        first = _moving(now - queue.oldest)
    return f"{first} {', '.join(rest)}." if rest else first


def _moving(age: timedelta) -> str:
    verb = "Work is moving" if age < timedelta(minutes=5) else "Work is behind"
    return f"{verb}: the oldest waiting item is {words.duration(timedelta(seconds=round(age.total_seconds())))} old."


def _lead_of_tenant(queue: Queue) -> str:
    if not queue.any_waits:
        return f"Nothing of yours waits, {queue.executing} execute."
    return f"{queue.waits} for you, {queue.executing} execute."


def _reduced(alive: Sequence[Process]) -> list[Reduced]:
    found = []
    for row in alive:
        if row.limit and row.limit.reduced:
            used = words.plural(row.limit.used, row.limit.what)
            title = f"{row.name.capitalize()} on {row.host} runs {used}, not {row.limit.asked:,}."
            found.append(Reduced(title=title, why=row.limit.why))
        for what, asked, serves, why in row.reduced:
            if what != "total":
                title = f"Job worker on {row.host} serves {serves:,} of tier {what}, not {asked:,}."
                found.append(Reduced(title=title, why=why))
    return found


def _adjusted(known: Live) -> list[Reduced]:
    return [
        Reduced(title=f"{one.key} is {one.used}, not {one.asked}.", why=one.why)
        for one in known.adjusted
    ]


def _change(row: ChangeRow) -> Changed:
    what = row.subject.removeprefix("pause:")
    kind, _, name = what.partition(":")
    if kind == "handler":
        what = registry.title(name)
    elif kind == "tenant":
        what = f"Tenant {name}"
    elif what == "everything":
        what = "Everything"
    elif kind in ("item", "run"):
        _, key, slug = (f"{name}  ").split(" ", 2)
        what = f"{registry.title(key)} for {slug.strip()}"
    elif kind == "job":
        what = f"Job {name[:8]}…"
    elif kind == "operation":
        what = f"Bulk operation {name.partition(' ')[0]}"
    else:
        what = name or what
    return Changed(at=row.at, what=what, verb=row.verb, who=row.who)


def _failure(row: FailureRow) -> Failure:
    slugs = row.tenants
    asked = {"handler": row.handler, "outcome": row.outcome, "since": "24 h"}
    text = failures.literal(row.error)
    query = urlencode({**asked, "text": text} if text else asked)
    return Failure(
        title=registry.title(row.handler),
        error=row.error,
        outcome=row.outcome,
        runs=f"{row.runs:,}+" if row.more else f"{row.runs:,}",
        tenants=slugs[0] if len(slugs) == 1 else f"{len(slugs):,} tenants",
        drawn=drawings.by_hour(row.by_hour, outcome=row.outcome),
        last=row.last_seen,
        address=f"{reverse(f'admin:{names.list_of(row.handler)}')}?{query}",
    )
