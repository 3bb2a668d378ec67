"""sum_up: the sums of each minute, and of longer stretches, so that the Metrics page never reads the runs of a month.

Called once a minute by the handler instance.sum_up. How far the sums go is one row,
moved in the transaction that writes them: whoever moves it second writes nothing. A
run is counted by the minute it ended in; one whose finish was committed over LAG after
its end, which takes an outage of the database, is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Min

from audit import sql
from audit.models import Run, RunSum, SummedUp

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LAG = timedelta(seconds=15)
SHORT, LONG = (
    timedelta(days=2),
    timedelta(days=32),
)  # what ranges up to a day, and a month, show


@dataclass(frozen=True, slots=True)
class Level:
    """A width of sums. A page reads the widest that fit its steps."""

    minutes: int
    kept: timedelta
    by_tenant: bool  # of each tenant too, and not only of all together

    @property
    def width(self) -> timedelta:
        """How long a stretch is summed up in one row of a handler."""
        return timedelta(minutes=self.minutes)


LEVELS = (
    Level(360, LONG, by_tenant=True),
    Level(60, LONG, by_tenant=True),
    Level(15, SHORT, by_tenant=False),
    Level(5, SHORT, by_tenant=False),
    Level(1, SHORT, by_tenant=False),
)
BATCH = 5000  # rows of a DELETE
ONLY = 1  # id of the one row of SummedUp


def sum_up(now: datetime, *, goes_on: Callable[[], bool]) -> int:
    """Write the sums of all minutes that are over; how many minutes that were.

    `goes_on` is asked before each step of at most an hour: what is left waits for the
    next call.
    """
    end = floor(now - LAG, MINUTE)
    done = 0
    while (since := _reached(now)) < end and goes_on():
        until = min(floor(since, HOUR) + HOUR, end)
        if not _step(since, until, now=now):
            break
        done += (until - since) // MINUTE
    _prune(now)
    return done


def reached() -> datetime | None:
    """How far the sums go. None: nothing was summed up yet."""
    return SummedUp.objects.filter(id=ONLY).values_list("until", flat=True).first()


def floor(moment: datetime, unit: timedelta) -> datetime:
    """The beginning of the minute or hour that a moment is in."""
    epoch = datetime.fromtimestamp(0, UTC)
    return moment - (moment - epoch) % unit


def _reached(now: datetime) -> datetime:
    """As above; at first sight the beginning of what is kept and there is."""
    if (until := reached()) is not None:
        return until
    kept = Run.objects.filter(finished_at__gte=now - LONG)
    first = kept.aggregate(first=Min("finished_at"))["first"] or now
    row, _ = SummedUp.objects.get_or_create(
        id=ONLY, defaults={"until": floor(first, LEVELS[0].width)}
    )
    return row.until


def _step(since: datetime, until: datetime, *, now: datetime) -> bool:
    """The minutes between, and the wider stretches that end there. False: another was faster."""
    with transaction.atomic():
        mine = SummedUp.objects.filter(id=ONLY, until=since).update(until=until)
        for level in LEVELS if mine else ():
            if until > now - level.kept:
                _write_level(level, since, until)
    return bool(mine)


def _write_level(level: Level, since: datetime, until: datetime) -> None:
    if level.minutes == 1:  # all of them by one statement
        _write(level, since, until, by_tenant=False)
        return
    end = floor(since, level.width) + level.width
    while end <= until:
        for by_tenant in (False, True)[: 1 + level.by_tenant]:
            _write(level, end - level.width, end, by_tenant=by_tenant)
        end += level.width


def _write(level: Level, since: datetime, until: datetime, *, by_tenant: bool) -> None:
    statement = sql.sums(
        connection.vendor,
        minutes=level.minutes,
        by_tenant=by_tenant,
        scoped=False,
        kept=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, bounds(since, until))


def bounds(since: datetime, until: datetime) -> dict[str, Any]:
    """The two as the database compares them."""
    adapt = connection.ops.adapt_datetimefield_value
    return {"since": adapt(since), "until": adapt(until)}


def _prune(now: datetime) -> None:
    for level in LEVELS:
        old = RunSum.objects.filter(minutes=level.minutes, start__lt=now - level.kept)
        while ids := list(old.values_list("id", flat=True)[:BATCH]):
            RunSum.objects.filter(id__in=ids).delete()
