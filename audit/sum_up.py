"""sum_up: the sums of each minute and hour, so that the Metrics page never reads the runs of a month.

Called once a minute by the handler instance.sum_up. How far the sums go is one row,
moved in the transaction that writes them: whoever moves it second writes nothing. A
run is counted by the minute it ended in; one whose finish was committed over LAG after
its end, which takes an outage of the database, is left out.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Min

from audit import sql
from audit.models import Run, RunSum, SummedUp

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LAG = timedelta(seconds=15)
MINUTES_KEPT = timedelta(days=2)  # the sums of minutes: what ranges up to a day show
HOURS_KEPT = timedelta(days=32)
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
    kept = Run.objects.filter(finished_at__gte=now - HOURS_KEPT)
    first = kept.aggregate(first=Min("finished_at"))["first"] or now
    row, _ = SummedUp.objects.get_or_create(
        id=ONLY, defaults={"until": floor(first, HOUR)}
    )
    return row.until


def _step(since: datetime, until: datetime, *, now: datetime) -> bool:
    """The minutes between, and the hour that they complete. False: another was faster."""
    with transaction.atomic():
        mine = SummedUp.objects.filter(id=ONLY, until=since).update(until=until)
        if mine and until > now - MINUTES_KEPT:
            _write(since, until, minutes=1, by_tenant=False)
        if mine and until == floor(until, HOUR):
            for by_tenant in (False, True):
                _write(until - HOUR, until, minutes=60, by_tenant=by_tenant)
    return bool(mine)


def _write(since: datetime, until: datetime, *, minutes: int, by_tenant: bool) -> None:
    statement = sql.sums(
        connection.vendor, minutes=minutes, by_tenant=by_tenant, scoped=False, kept=True
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, bounds(since, until))


def bounds(since: datetime, until: datetime) -> dict[str, Any]:
    """The two as the database compares them."""
    adapt = connection.ops.adapt_datetimefield_value
    return {"since": adapt(since), "until": adapt(until)}


def _prune(now: datetime) -> None:
    for minutes, kept in ((1, MINUTES_KEPT), (60, HOURS_KEPT)):
        old = RunSum.objects.filter(minutes=minutes, start__lt=now - kept)
        while ids := list(old.values_list("id", flat=True)[:BATCH]):
            RunSum.objects.filter(id__in=ids).delete()
