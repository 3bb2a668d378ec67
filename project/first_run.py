"""first_run: what a new installation still lacks for its first run, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.urls import NoReverseMatch, reverse

from scheduler import cadence
from scheduler.exceptions import InvalidCadence
from scheduler.servers import Mastership, Process
from workqueue import registry
from workqueue.models import Node, Tenant

DATABASES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that has to be there."""

    title: str
    at: datetime | None  # since when it is; null: not yet
    help: str = ""  # what to do, where it is not; `code` between backticks
    lack: str = ""  # "a worker has reported": what is waited for
    address: str = ""  # where to do it
    button: str = ""
    due: datetime | None = None  # when it comes by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRun:
    """The list of steps, in order."""

    steps: tuple[Step, ...]

    @property
    def done(self) -> int:
        """How many are."""
        return sum(step.at is not None for step in self.steps)

    @property
    def now(self) -> Step | None:
        """The first that is not."""
        return next((step for step in self.steps if step.at is None), None)

    @property
    def sentence(self) -> str:
        """What it waits for."""
        lacks = [step.lack for step in self.steps if step.at is None and step.lack]
        if not lacks:
            return "All is there: the first run comes with the next slot."
        return f"It is ready for work when {' and '.join(lacks)}."


def steps(master: Mastership, alive: Sequence[Process], *, now: datetime) -> FirstRun:
    """Where this installation stands. Two statements."""
    prepared = (
        MigrationRecorder.Migration.objects.order_by("-applied")
        .values_list("applied", flat=True)
        .first()
    )
    return FirstRun(
        steps=(
            Step(
                title=f"Database prepared: {DATABASES.get(connection.vendor, connection.vendor)}, all migrations applied",
                at=prepared or now,
            ),
            _server(alive),
            _master(master),
            _worker(alive),
            _tenant(now),
            _run(now=now, worker=any(row.kind == Node.Kind.WORKER for row in alive)),
        )
    )


def _server(alive: Sequence[Process]) -> Step:
    started = [row.started_at for row in alive if row.kind == Node.Kind.SERVER]
    return Step(
        title="Server node alive" if started else "No server node has reported yet",
        lack="a server node has reported",
        at=min(started, default=None),
        help=(
            "In modes `all` and `api` one starts by itself. Elsewhere:"
            " `uv run manage.py runscheduler`, with the same `DATABASE_URL`."
        ),
    )


def _master(master: Mastership) -> Step:
    return Step(
        title=f"Master elected: {master.host}, term {master.term:,}"
        if master.held
        else "No master yet",
        at=master.since if master.held else None,
        help=(
            "A server node takes the lease within 2 s of its start, or when the last one has expired."
        ),
    )


def _worker(alive: Sequence[Process]) -> Step:
    started = [row.started_at for row in alive if row.kind == Node.Kind.WORKER]
    return Step(
        title="Worker alive" if started else "No worker has reported yet",
        lack="a worker has reported",
        at=min(started, default=None),
        help=(
            "In mode `all` one starts by itself within 10 s. Elsewhere: `uv run manage.py"
            " runworker`, with the same `DATABASE_URL`. If it runs and still does not show,"
            " it waits for the schema and says so in its log."
        ),
    )


def _tenant(now: datetime) -> Step:
    there = Tenant.objects.filter(is_platform=False).exists()
    each = sum(row.scope == "tenant" for row in registry.rows().values())
    return Step(
        title="First tenant",
        lack="a tenant exists",
        at=now if there else None,
        help=(
            f"Only the platform tenant exists. {each} of the handlers run once for each tenant."
        ),
        address=_address("admin:workqueue_tenant_add"),
        button="Add a tenant",
    )


def _run(*, now: datetime, worker: bool) -> Step:
    upcoming = [(at, title) for title, text in _cadences() if (at := _next(text, now))]
    due, title = min(upcoming, default=(None, ""))
    wait = "" if worker else "; its item waits until a worker has reported"
    said = (
        f"The next slot is that of {title}{wait}."
        if due
        else "Nothing on the timetable has a cadence."
    )
    return Step(title="First run", at=None, due=due, help=said)


def _cadences() -> list[tuple[str, str]]:
    return [(row.title, row.cadence) for row in registry.rows().values() if row.cadence]


def _next(text: str, now: datetime) -> datetime | None:
    try:
        return cadence.parse(text, settings.TIME_ZONE).next_after(now)
    except InvalidCadence:
        return None


def _address(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
