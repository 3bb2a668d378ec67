"""look: everything a server needs to know at each pass, read in one statement.

Called by the ticker, at most every two seconds. Brings the settings and pauses in
force along (`workqueue.live`) and is a sample of the database's clock.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from audit import clock
from scheduler import sql
from scheduler.exceptions import LeaseGone
from workqueue import live
from workqueue.live import Live


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The master's lease as it stands."""

    holder: UUID | None  # None: resigned, or nobody yet
    node: str  # host, pid of the holder, or of the last one
    term: int
    since: datetime | None
    expires_at: datetime | None
    free: bool  # nobody is master now: a take-over may begin


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """A row of scheduler.Schedule, as far as ticking needs it."""

    key: str
    last_slot: datetime | None  # newest slot that was ticked
    since: datetime  # slots up to here are not missed
    effective: str  # the cadence and zone that `since` stands for
    problem: str
    cadence: str  # the operator's; "" = the timetable's
    run_requested_at: datetime | None
    run_requested_by: str
    run_requested_why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look saw."""

    now: datetime  # database time
    lease: Lease
    schedules: dict[str, ScheduleRow]
    live: Live


def look() -> Look:
    """Look. Raises DatabaseError where the database is away, LeaseGone where its row is."""
    fixed = clock.fixed()
    sent = clock.steady()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite" and fixed:
            fixed = connection.ops.adapt_datetimefield_value(fixed)  # type: ignore[assignment]
        cursor.execute(sql.LOOK[connection.vendor], [fixed, fixed])
        row = cursor.fetchone()
    received = clock.steady()
    if row is None:
        raise LeaseGone
    now, holder, node, term, since, expires_at, free, schedules, *columns = row
    if clock.fixed() is None:
        clock.sample(database=_required(now), sent=sent, received=received)
    return Look(
        now=_required(now),
        lease=Lease(
            holder=_uuid(holder),
            node=node,
            term=term,
            since=_moment(since),
            expires_at=_moment(expires_at),
            free=bool(free),
        ),
        schedules={
            one.key: one for one in map(_schedule, json.loads(schedules or "[]"))
        },
        live=live.adopt(columns),
    )


def _schedule(values: dict[str, Any]) -> ScheduleRow:
    moments = ("last_slot", "since", "run_requested_at")
    read: dict[str, Any] = {name: _moment(values[name]) for name in moments}
    return ScheduleRow(**{**values, **read})


def _uuid(value: UUID | str | None) -> UUID | None:
    """SQLite keeps them as text."""
    return UUID(value) if isinstance(value, str) else value


def _moment(value: datetime | str | None) -> datetime | None:
    """SQLite, and JSON everywhere, keep them as text; SQLite leaves out that it is UTC."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


def _required(value: datetime | str) -> datetime:
    moment = _moment(value)
    assert moment is not None  # noqa: S101  the clock always has a time
    return moment
