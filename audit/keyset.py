"""keyset: one page of a long list, and how many rows match, without counting the table.

A page starts after the last row that was shown (time and id), so page one and page
ten thousand cost the same and rows that arrive meanwhile shift nothing. Counts stop
at CAP. Conditions that no index serves are a `sieve`: rows are read in the list's order
and sifted until a page is full or the time is up, and the page says how far back that
was. On PostgreSQL every statement is ended in time besides: nothing holds a connection
while an operator waits.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.db import OperationalError, connection, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, Count, Q, QuerySet, Value, When

from audit import clock, sql, words

CAP = 10_000  # rows; "10,000+" beyond
SIZE = 50  # rows a page
SIFT_MS = 250  # milliseconds that a page sifts rows before it says how far it got
COUNT_SIFT_MS = 100  # milliseconds that a count sifts rows before it says "at least"
PAGE_MS = 3000  # milliseconds until a page is given up
COUNT_MS = 250  # milliseconds until a count is given up
DURATIONS = ("waited", "ran")  # annotations by which a list may be ordered
CANCELED = "57014"  # PostgreSQL: ended by statement_timeout


class TooSlow(Exception):
    """No index serves this search, and it was ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page[Row: models.Model]:
    """A stretch of a list, in the list's order."""

    rows: tuple[Row, ...] = ()
    older: str = ""  # cursor of the page with what is older; "": nothing older
    newer: str = ""  # cursor of the page with what is newer; "": nothing newer
    first_at: Any = None  # what the list is ordered by, of the first row
    last_at: Any = None
    ascending: bool = False  # oldest first
    searched_to: Any = None  # set: beyond this no row was looked at, for want of time
    slow: bool = False  # given up: no index serves what was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """How many rows match."""

    found: int
    more: bool = False  # at least; the rest was not counted


class _Late(models.Func):
    """Whether the statement has run for longer than this; asked anew for every row."""

    output_field = models.BooleanField()

    def __init__(self, milliseconds: int) -> None:
        super().__init__()
        self.milliseconds = milliseconds

    def as_sql(
        self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any
    ) -> tuple[str, tuple[Any, ...]]:
        """By the database's clock; SQLite has it as a registered function."""
        if connection.vendor == "postgresql":
            until = "statement_timestamp() + make_interval(secs => %s::float8)"
            return f"clock_timestamp() > {until}", (self.milliseconds / 1000,)
        deadline = clock.now() + timedelta(milliseconds=self.milliseconds)
        return "clock_timestamp() > %s", (
            connection.ops.adapt_datetimefield_value(deadline),
        )


def page[Row: models.Model](
    queryset: QuerySet[Row],
    *,
    time: str,
    older: str = "",
    newer: str = "",
    size: int = SIZE,
    sieve: Q | None = None,
    sift_ms: int = SIFT_MS,
    ascending: bool = False,
    by_key: bool = False,
) -> Page[Row]:
    """The page behind a cursor; a cursor that cannot be read is the first page.

    `time`: the column or annotation that orders the list, newest or longest first
    unless `ascending`. `sieve`: the conditions that no index serves. `by_key`: the
    primary key grows with `time` and gives the order, where no index has the time.
    """
    walk = _Walk(
        queryset=queryset,
        time=time,
        sieve=sieve,
        sift_ms=sift_ms,
        size=size,
        by_key=by_key,
    )
    try:
        with patience(PAGE_MS):
            return walk.page(older=older, newer=newer, ascending=ascending)
    except TooSlow:
        return Page(slow=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk[Row: models.Model]:
    queryset: QuerySet[Row]
    time: str
    sieve: Q | None
    sift_ms: int
    size: int
    by_key: bool

    def page(self, *, older: str, newer: str, ascending: bool) -> Page[Row]:
        onward, back = (newer, older) if ascending else (older, newer)
        if (place := self._read(back)) is not None:
            rows, edge, more = self._stretch(place, ascending=not ascending)
            if rows and (more or edge is not None):
                shown = tuple(reversed(rows))
                before = edge if edge is not None else shown[0]
                return self._made(shown, shown[-1], before, ascending=ascending)
            place = None  # the beginning is near: a whole page of it
        else:
            place = self._read(onward)
        rows, edge, more = self._stretch(place, ascending=ascending)
        after = edge if edge is not None else rows[-1] if more else None
        first = rows[0] if rows and place is not None else None
        return self._made(tuple(rows), after, first, ascending=ascending, edge=edge)

    def _stretch(
        self, place: tuple[Any, Any] | None, *, ascending: bool
    ) -> tuple[list[Row], Row | None, bool]:
        """Rows beyond a place, nearest first; the row at which time was up; whether there are more."""
        sign, side = ("", "gt") if ascending else ("-", "lt")
        found = self.queryset
        if place is not None:
            found = found.filter(
                Q(**{f"pk__{side}": place[1]})
                if self.by_key
                else _beyond(self.time, place, side)
            )
        found = _sifted(found, self.sieve, self.sift_ms)
        order = ("pk",) if self.by_key else (self.time, "pk")
        rows = list(
            found.order_by(*(f"{sign}{each}" for each in order))[: self.size + 1]
        )
        if self.sieve is not None:
            # The newest row that was let through untried: all rows before it were tried,
            # in whatever order the planner read them.
            for number, row in enumerate(rows[: self.size]):
                if not row.hit:  # type: ignore[attr-defined]
                    return rows[:number], row, True
        return rows[: self.size], None, len(rows) > self.size

    def _made(
        self,
        rows: tuple[Row, ...],
        after: Row | None,
        before: Row | None,
        *,
        ascending: bool,
        edge: Row | None = None,
    ) -> Page[Row]:
        onward = "" if after is None else self._cursor(after)
        back = "" if before is None else self._cursor(before)
        return Page(
            rows=rows,
            older=back if ascending else onward,
            newer=onward if ascending else back,
            ascending=ascending,
            first_at=getattr(rows[0], self.time) if rows else None,
            last_at=getattr(rows[-1], self.time) if rows else None,
            searched_to=None if edge is None else getattr(edge, self.time),
        )

    def _cursor(self, row: Row) -> str:
        value = getattr(row, self.time)
        if isinstance(value, timedelta):
            return f"{value // timedelta(microseconds=1)}us_{row.pk}"
        return f"{value.isoformat()}_{row.pk}"

    def _read(self, cursor: str) -> tuple[Any, Any] | None:
        """The place that a cursor stands for, or None."""
        at, _, pk = cursor.partition("_")
        try:
            moment = (
                timedelta(microseconds=int(at.removesuffix("us")))
                if at.endswith("us")
                else datetime.fromisoformat(at)
            )
            key = _key(pk, self.queryset)
        except (ValueError, OverflowError):
            return None
        aware = isinstance(moment, timedelta) or moment.tzinfo is not None
        ours = isinstance(moment, timedelta) == (self.time in DURATIONS)
        return (moment, key) if aware and ours else None


def count(
    queryset: QuerySet[Any], *, sieve: Q | None = None, time: str = ""
) -> Total | None:
    """How many match, up to CAP. None: it could not be said in time.

    `time`: what an index has them in the order of; else they are read as they lie.
    """
    # Without an order the planner reads the table from its beginning until it has CAP.
    order = [f"-{time}"] if time else []
    rows = _sifted(queryset, sieve, COUNT_SIFT_MS, try_late=False).order_by(*order)
    try:
        with patience(COUNT_MS):
            if sieve is None:
                found, untried = rows.values("pk")[: CAP + 1].count(), 0
            else:
                said = rows.values("pk", "hit")[: CAP + 1].aggregate(
                    found=Count("pk", filter=Q(hit=True)),
                    untried=Count("pk", filter=Q(hit=False)),
                )
                found, untried = said["found"], said["untried"]
    except TooSlow:
        return None
    return Total(found=min(found, CAP), more=found > CAP or untried > 0)


def matches(total: Total | None, one: str) -> str:
    """'1 run matches', '10,000+ runs match'; nothing where nothing was found so far."""
    if total is None:
        return f"More {one}s match than can be counted quickly"
    if total.more and not total.found:
        return ""
    if total.found == 1 and not total.more:
        return f"1 {one} matches"
    return f"{shown(total)} {one}s match"


def shown(total: Total | None) -> str:
    """A count as `count` gives it: 37, 10,000+, or a dash."""
    if total is None:
        return words.UNKNOWN
    return f"{total.found:,}+" if total.more else f"{total.found:,}"


@contextmanager
def patience(milliseconds: int) -> Iterator[None]:
    """End what runs inside after so long, on PostgreSQL. Raises TooSlow."""
    if connection.vendor != "postgresql":
        yield
        return
    nested = connection.in_atomic_block  # else it ends with the transaction
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(sql.STATEMENT_TIMEOUT, [str(milliseconds)])
            yield
            if nested:
                with connection.cursor() as cursor:
                    cursor.execute(sql.STATEMENT_TIMEOUT, ["0"])
    except OperationalError as problem:
        if getattr(problem.__cause__, "sqlstate", "") == CANCELED:
            raise TooSlow from problem
        raise


def _beyond(time: str, place: tuple[datetime, Any], side: str) -> Q:
    """Strictly before or after a place. The first condition is what the index is walked by."""
    at, pk = place
    return Q(**{f"{time}__{side}e": at}) & (
        Q(**{f"{time}__{side}": at}) | Q(**{f"pk__{side}": pk})
    )


def _key(text: str, queryset: QuerySet[Any]) -> UUID | int:
    """A primary key as a cursor has it. ValueError: it is none."""
    if isinstance(queryset.model._meta.pk, models.UUIDField):
        return UUID(text)
    if abs(number := int(text)) >= 2**63:
        raise ValueError("no key of a row")
    return number


def _sifted[Row: models.Model](
    queryset: QuerySet[Row], sieve: Q | None, sift_ms: int, *, try_late: bool = True
) -> QuerySet[Row]:
    """Rows that pass the sieve, and, once the time is up, every row: so the limit is soon reached.

    `hit` tells which; `try_late`: those that came too late may be one too.
    """
    if sieve is None:
        return queryset
    late = Q(_Late(sift_ms))
    tried = [When(sieve, then=Value(True))]
    if not try_late:
        tried.insert(0, When(late, then=Value(False)))
    sifted = queryset.filter(sieve | late if try_late else late | sieve)
    hit = Case(*tried, default=Value(False))
    return cast(QuerySet[Row], sifted.annotate(hit=hit))
