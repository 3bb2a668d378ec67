"""plan: the timetable and what operators overrode -> what each row is waiting for.

Called at the beginning of every pass with what the look saw. Keeps `Schedule` true: a
row at first sight, and a row whose cadence or zone changed, begin now, so that nothing
before is missed. A cadence that cannot be read, however it got in, flags its own row
and leaves the others alone.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from django.conf import settings

from audit import clock
from scheduler import cadence
from scheduler.cadence import Cadence
from scheduler.election import Election
from scheduler.exceptions import InvalidCadence
from scheduler.look import Look, ScheduleRow
from scheduler.models import Schedule
from workqueue import registry
from workqueue.live import Live, PauseRow
from workqueue.registry import Handler

logger = logging.getLogger(__name__)

ON_DEMAND = "on demand"
_NOBODY = -1  # a tenant id that none has: only pauses of all tenants name it


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A row of the timetable as it is ticked at present."""

    row: Handler
    cadence: Cadence | None  # None: on demand, or its cadence cannot be read
    effective: str  # its text and its zone
    since: datetime  # slots up to here are ticked, or will not be
    problem: str  # why it does not tick; "" = it does
    schedule: ScheduleRow | None  # None: never seen before

    @property
    def next_slot(self) -> datetime | None:
        """The slot that it waits for, or that is due. None: it has none."""
        return _next_after(self.cadence, self.since) if self.cadence else None


def plans(seen: Look, *, election: Election) -> list[Plan]:
    """A plan for every row of the timetable, in its order. Writes where one is new."""
    now = clock.now()
    found = [
        plan(row, seen.schedules.get(row.key), now=now)
        for row in registry.rows().values()
    ]
    if new := [one for one in found if _is_new(one)]:
        with election.acting():
            for one in new:
                _write(one)
    return found


def plan(row: Handler, schedule: ScheduleRow | None, *, now: datetime) -> Plan:
    """What a row waits for. Touches nothing."""
    zone = settings.SERVER_TIME_ZONE
    text = (schedule.cadence if schedule else "") or row.cadence or ""
    made, problem = None, ""
    if text:
        try:
            made = cadence.parse(text, zone)
        except InvalidCadence as refused:
            problem = str(refused)
    begun = Plan(
        row=row,
        cadence=made,
        effective=f"{text} {zone}" if text else ON_DEMAND,
        since=now,
        problem=problem,
        schedule=schedule,
    )
    if schedule is None or schedule.effective != begun.effective:
        return begun
    since = max(schedule.since, schedule.last_slot or schedule.since)
    return replace(begun, since=since, problem=problem or schedule.problem)


def pause_of(key: str, *, live: Live, now: datetime) -> PauseRow | None:
    """The pause that holds a row for all tenants."""
    return live.paused(key, _NOBODY, now)


def seconds_to_next(found: Sequence[Plan], *, now: datetime, at_most: float) -> float:
    """Until the next slot that has not come yet."""
    waits = (
        (slot - now).total_seconds()
        for one in found
        if (slot := _next_after(one.cadence, now) if one.cadence else None)
    )
    return min([at_most, *waits])


@lru_cache(maxsize=1024)
def _next_after(made: Cadence, moment: datetime) -> datetime | None:
    """Remembered: a daily row is asked 40,000 times between two slots."""
    return made.next_after(moment)


def _is_new(one: Plan) -> bool:
    schedule = one.schedule
    return (
        schedule is None
        or schedule.effective != one.effective
        or bool(one.problem) != bool(schedule.problem)
    )


def _write(one: Plan) -> None:
    values = {"since": one.since, "effective": one.effective, "problem": one.problem}
    Schedule.objects.update_or_create(key=one.row.key, defaults=values)
    if one.problem:
        logger.error("handler does not tick handler=%s: %s", one.row.key, one.problem)
    else:
        logger.info("schedule begins handler=%s cadence=%s", one.row.key, one.effective)
