"""keyset: one page of a long list, and how many rows match, without counting the table.

A page starts after the last row that was shown (time and id), so page one and page
ten thousand cost the same and rows that arrive meanwhile shift nothing. Counts stop
at CAP. On PostgreSQL both give up in time: a search that no index serves must not
hold a connection while an operator waits.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, models, transaction
from django.db.models import Q, QuerySet

from audit import sql, words

CAP = 10_000  # rows; "10,000+" beyond
SIZE = 50  # rows a page
PAGE_MS = 3000  # milliseconds until a page is given up
COUNT_MS = 700  # milliseconds until a count is given up
CANCELED = "57014"  # PostgreSQL: ended by statement_timeout


class TooSlow(Exception):
    """No index serves this search, and it was ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page[Row: models.Model]:
    """A stretch of a list, newest first."""

    rows: tuple[Row, ...] = ()
    older: str = ""  # cursor of the page after this one; "": nothing older
    newer: str = ""  # cursor of the page before this one; "": this is the newest
    first_at: datetime | None = None  # time of the first row
    last_at: datetime | None = None
    slow: bool = False  # given up: no index serves what was asked


def page[Row: models.Model](
    queryset: QuerySet[Row],
    *,
    time: str,
    older: str = "",
    newer: str = "",
    size: int = SIZE,
) -> Page[Row]:
    """The page behind a cursor; a cursor that cannot be read is the newest page."""
    try:
        with patience(PAGE_MS):
            return _page(queryset, time, older=older, newer=newer, size=size)
    except TooSlow:
        return Page(slow=True)


def _page[Row: models.Model](
    queryset: QuerySet[Row], time: str, *, older: str, newer: str, size: int
) -> Page[Row]:
    if (after := _read(newer, queryset)) is not None:
        found = list(
            queryset.filter(_beyond(time, after, "gt")).order_by(time, "pk")[: size + 1]
        )
        if len(found) > size:
            return _made(found[size - 1 :: -1], time, older=True, newer=True)
        before = None  # the beginning is near: a whole page of it
    else:
        before = _read(older, queryset)
    matching = queryset.filter(_beyond(time, before, "lt")) if before else queryset
    found = list(matching.order_by(f"-{time}", "-pk")[: size + 1])
    return _made(found[:size], time, older=len(found) > size, newer=before is not None)


def _made[Row: models.Model](
    rows: list[Row], time: str, *, older: bool, newer: bool
) -> Page[Row]:
    if not rows:
        return Page()
    first, last = rows[0], rows[-1]
    return Page(
        rows=tuple(rows),
        older=_cursor(last, time) if older else "",
        newer=_cursor(first, time) if newer else "",
        first_at=getattr(first, time),
        last_at=getattr(last, time),
    )


def count(queryset: QuerySet[Any]) -> int | None:
    """How many match, CAP + 1 standing for more. None: it could not be said in time."""
    try:
        with patience(COUNT_MS):
            return queryset.order_by().values("pk")[: CAP + 1].count()
    except TooSlow:
        return None


def matches(found: int | None, one: str) -> str:
    """'1 run matches', '10,000+ runs match'."""
    if found is None:
        return f"More {one}s match than can be counted quickly"
    return f"1 {one} matches" if found == 1 else f"{shown(found)} {one}s match"


def shown(found: int | None) -> str:
    """A count as `count` gives it: 37, 10,000+, or a dash."""
    if found is None:
        return words.UNKNOWN
    return f"{CAP:,}+" if found > CAP else f"{found:,}"


@contextmanager
def patience(milliseconds: int) -> Iterator[None]:
    """End what runs inside after so long, on PostgreSQL. Raises TooSlow."""
    if connection.vendor != "postgresql":
        yield
        return
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(sql.STATEMENT_TIMEOUT, [str(milliseconds)])
            yield
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


def _cursor(row: models.Model, time: str) -> str:
    return f"{getattr(row, time).isoformat()}_{row.pk}"


def _read(cursor: str, queryset: QuerySet[Any]) -> tuple[datetime, Any] | None:
    """The place that a cursor stands for, or None."""
    at, _, pk = cursor.partition("_")
    try:
        moment = datetime.fromisoformat(at)
        key: UUID | int = (
            UUID(pk)
            if isinstance(queryset.model._meta.pk, models.UUIDField)
            else int(pk)
        )
    except ValueError:
        return None
    return (
        (moment, key)
        if moment.tzinfo is not None and (isinstance(key, UUID) or abs(key) < 2**63)
        else None
    )
