"""metrics: waits, run times, throughput and failures of a range of time, from sums.

Bounded however many runs there were: all tenants together are read from sums that are
as wide as the steps; some tenants from their sums of hours, and for what is younger, at
most a few hours, from their runs, under a timeout.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F, QuerySet

from audit import keyset, sql, sum_up
from audit.models import RunSum

MOST = 200_000  # sums read for a page; beyond it there are too many tenants for one
QUERY_MS = 3000  # milliseconds until a query of the page is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """How far the page looks back, and in which steps."""

    name: str  # as in the address: "24h"
    title: str
    span: timedelta
    step: timedelta  # for all tenants together
    step_of_some: timedelta  # for some tenants: whole hours from a day on


RANGES = {
    one.name: one
    for one in (
        Range(
            name=name,
            title=title,
            span=timedelta(minutes=span),
            step=timedelta(minutes=step),
            step_of_some=timedelta(minutes=some),
        )
        for name, title, span, step, some in (
            ("1h", "1 h", 60, 1, 1),
            ("6h", "6 h", 360, 5, 5),
            ("24h", "24 h", 1440, 15, 60),
            ("7d", "7 d", 10_080, 120, 120),
            ("30d", "30 d", 43_200, 360, 360),
        )
    )
}


@dataclass(slots=True)
class Total:
    """What some runs came to."""

    runs: int = 0
    failed: int = 0  # with those that were abandoned
    partial: int = 0
    cancelled: int = 0
    waits: dict[str, int] = field(default_factory=dict)  # bucket -> runs
    rans: dict[str, int] = field(default_factory=dict)

    def add(self, more: "Total | _Row") -> None:
        """Count in."""
        self.runs += more.runs
        self.failed += more.failed
        self.partial += more.partial
        self.cancelled += more.cancelled
        # Twice for each of many thousand sums: a Counter takes three times as long.
        for mine, theirs in ((self.waits, more.waits), (self.rans, more.rans)):
            known = mine.get
            for bucket, runs in theirs.items():
                mine[bucket] = known(bucket, 0) + runs

    def waited(self, part: float) -> timedelta | None:
        """The wait that `part` of the runs did not exceed."""
        return percentile(self.waits, part)

    def ran(self, part: float) -> timedelta | None:
        """The run time that `part` of the runs did not exceed."""
        return percentile(self.rans, part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """A range in steps."""

    since: datetime
    until: datetime
    step: timedelta
    starts: tuple[datetime, ...]  # of the steps, oldest first
    steps: tuple[Total, ...]
    whole: Total
    by_handler: Mapping[str, Total]
    failures: Mapping[str, tuple[int, ...]]  # handler -> failed runs of each step

    @property
    def whole_steps(self) -> bool:
        """Whether the last step is over, too."""
        return (self.until - self.since) % self.step == timedelta()

    @property
    def minutes(self) -> tuple[float, ...]:
        """How long each step has been."""
        ends = (*self.starts[1:], self.until)
        return tuple(
            (end - start) / timedelta(minutes=1)
            for start, end in zip(self.starts, ends, strict=True)
        )


class _Row(NamedTuple):
    """A sum, wherever it was read. A tuple: many thousand are made for a page."""

    start: datetime
    handler: str
    runs: int
    failed: int  # with those that were abandoned
    partial: int
    cancelled: int
    waits: dict[str, int]
    rans: dict[str, int]


_COLUMNS = ("start", "handler", "runs", "bad", "partial", "cancelled", "waits", "rans")


def read(
    asked: Range, *, tenants: frozenset[int] | None, handler: str = "", now: datetime
) -> Metrics:
    """The range up to the last minute that was summed up. Raises keyset.TooSlow."""
    until = sum_up.reached() or sum_up.floor(now, sum_up.MINUTE)
    step = asked.step if tenants is None else asked.step_of_some
    first = sum_up.floor(until - asked.span, step)
    if first < until - asked.span:
        first += step  # a step that is not whole would look like a fall
    with keyset.patience(QUERY_MS):
        rows = list(_rows(first, until, step=step, tenants=tenants, handler=handler))
    return _made(rows, first=first, until=until, step=step)


def percentile(counts: Mapping[str, int], part: float) -> timedelta | None:
    """The length that `part` of the counted runs did not exceed, right to 6 %. None: there are none."""
    left = part * sum(counts.values())
    if not counts:
        return None
    for bucket in sorted(counts, key=int):
        if left <= counts[bucket]:
            break
        left -= counts[bucket]
    within = max(left, 0) / counts[bucket]
    return timedelta(milliseconds=10 ** ((int(bucket) + within) / 20))


def _rows(
    since: datetime,
    until: datetime,
    *,
    step: timedelta,
    tenants: frozenset[int] | None,
    handler: str,
) -> Iterable[_Row]:
    """The widest sums that fit the steps, then narrower ones for what is younger."""
    ids = sorted({RunSum.ALL} if tenants is None else tenants)
    found = []
    for level in sum_up.LEVELS:
        end = sum_up.floor(until, level.width)
        known = tenants is None or level.by_tenant
        if known and level.width <= step and since < end:
            found.append(
                RunSum.objects.filter(
                    minutes=level.minutes,
                    tenant_id__in=ids,
                    start__gte=since,
                    start__lt=end,
                    **({"handler": handler} if handler else {}),
                )
            )
            since = end
    yield from _kept(found)
    if tenants is not None and since < until:
        rows = _counted(since, until, tenants=tenants)
        yield from (row for row in rows if handler in ("", row.handler))


def _kept(found: Sequence[QuerySet[RunSum]]) -> Iterable[_Row]:
    """One statement, however many levels; each has its own stretch of the index."""
    levels = [
        one.annotate(bad=F("failed") + F("abandoned")).values_list(*_COLUMNS)
        for one in found
    ]
    if not levels:
        return ()
    rows = list(levels[0].union(*levels[1:], all=True)[: MOST + 1])
    if len(rows) > MOST:
        raise keyset.TooSlow
    return map(_Row._make, rows)


def _counted(
    since: datetime, until: datetime, *, tenants: frozenset[int]
) -> Iterable[_Row]:
    """The minutes of some tenants, from their runs."""
    ids = sorted(tenants)
    postgresql = connection.vendor == "postgresql"
    statement = sql.sums(
        connection.vendor, minutes=1, by_tenant=False, scoped=True, kept=False
    )
    values = {
        **sum_up.bounds(since, until),
        "tenants": ids if postgresql else json.dumps(ids),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        names = [column[0] for column in cursor.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return map(_as_kept, found)


def _as_kept(row: dict[str, Any]) -> _Row:
    """What a cursor gave, as the ORM would: JSON comes as text, on SQLite times do too."""
    start = row["start"]
    if isinstance(start, str):
        start = datetime.fromisoformat(start).replace(tzinfo=UTC)
    return _Row(
        start=start,
        handler=row["handler"],
        runs=row["runs"],
        failed=row["failed"] + row["abandoned"],
        partial=row["partial"],
        cancelled=row["cancelled"],
        waits=json.loads(row["waits"]),
        rans=json.loads(row["rans"]),
    )


def _made(
    rows: list[_Row], *, first: datetime, until: datetime, step: timedelta
) -> Metrics:
    count = max(-((first - until) // step), 0)
    steps = tuple(Total() for _ in range(count))
    whole, by_handler = Total(), dict[str, Total]()
    failures: dict[str, list[int]] = {}
    for row in rows:
        place = (row.start - first) // step
        steps[place].add(row)
        if (total := by_handler.get(row.handler)) is None:
            total = by_handler[row.handler] = Total()
        total.add(row)
        if row.failed:
            failures.setdefault(row.handler, [0] * count)[place] += row.failed
    for total in by_handler.values():
        whole.add(total)
    return Metrics(
        since=first,
        until=until,
        step=step,
        starts=tuple(first + step * place for place in range(count)),
        steps=steps,
        whole=whole,
        by_handler=by_handler,
        failures={handler: tuple(counts) for handler, counts in failures.items()},
    )
