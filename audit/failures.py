"""failures: bad runs grouped by handler, outcome and what reads as the same error.

Reads the newest of each outcome up to a bound, however many there are.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from django.db import connection
from django.db.models.functions import Left

from audit import sql
from audit.models import Run
from audit.rows import FailureRow

READ = 5_000  # newest bad runs of each outcome
SEARCHABLE = 4  # characters; a shorter text finds everything
BAD = (Run.Outcome.FAILED, Run.Outcome.PARTIAL, Run.Outcome.ABANDONED)
HOUR = timedelta(hours=1)
# What differs between two texts of the same error: addresses of e-mail and in memory,
# ids, numbers. Most texts have no address, and looking for one takes most of the time.
_NUMBER = r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|\d+"
_NUMBERS = re.compile(_NUMBER)
_PARTICULAR = re.compile(rf"[\w.+-]{{1,64}}@[\w.-]{{1,255}}|{_NUMBER}")


class _Bad(NamedTuple):
    """A run that went wrong. A tuple: thousands are read for a page."""

    handler: str
    outcome: str
    tenant: str
    finished_at: datetime
    said: str


def grouped(
    since: datetime, *, tenants: frozenset[int] | None, now: datetime
) -> list[FailureRow]:
    """The groups, most runs first."""
    rows = _read(since, tenants)
    read = Counter(row.outcome for row in rows)
    groups = defaultdict(list)
    for row in rows:
        groups[row.handler, row.outcome, _shared(row.said)].append(row)
    found = [
        _group(of, since=since, now=now, more=read[outcome] >= READ)
        for (_, outcome, _), of in groups.items()
    ]
    return sorted(found, key=lambda row: (-row.runs, row.handler, row.error))


def literal(error: str) -> str:
    """The longest stretch that all errors of a group share: what the list can be searched for."""
    parts = _PARTICULAR.split(error.partition("\n")[0])
    longest = max((part.strip() for part in parts), key=len)
    return longest if len(longest) >= SEARCHABLE else ""


@lru_cache(maxsize=len(BAD) * READ)  # a page that refreshes itself reads the same texts
def _shared(error: str) -> str:
    """What all errors of a group share."""
    return (_PARTICULAR if "@" in error else _NUMBERS).sub("#", error)


def _read(since: datetime, tenants: frozenset[int] | None) -> list[_Bad]:
    """The newest bad runs, as much of them as a group needs."""
    if tenants is None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                sql.NEWEST_BAD, {"outcomes": list(BAD), "since": since, "per": READ}
            )
            return list(map(_Bad._make, cursor.fetchall()))
    found = Run.objects.filter(outcome__in=BAD, finished_at__gte=since)
    if tenants is not None:
        found = found.filter(tenant_id__in=sorted(tenants))
    newest = found.order_by("-finished_at").annotate(said=Left("error", 300))
    return list(map(_Bad._make, newest.values_list(*_Bad._fields)[: READ * len(BAD)]))


def _group(
    rows: Sequence[_Bad], *, since: datetime, now: datetime, more: bool
) -> FailureRow:
    newest = max(rows, key=attrgetter("finished_at"))
    hours = max(1, round((now - since) / HOUR))
    backs = Counter((now - row.finished_at) // HOUR for row in rows)
    by_hour = [0] * hours
    for back, runs in backs.items():
        by_hour[hours - 1 - min(max(back, 0), hours - 1)] += runs
    return FailureRow(
        handler=newest.handler,
        outcome=newest.outcome,
        error=newest.said,
        runs=len(rows),
        more=more,
        tenants=tuple(sorted({row.tenant for row in rows})),
        by_hour=tuple(by_hour),
        last_seen=newest.finished_at,
    )
