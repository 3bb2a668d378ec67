"""around_locks: insert for many tenants although somebody's open transaction holds a few.

An INSERT waits for a transaction that has inserted, or deleted, an item with the same
key and not yet ended. One slow caller must not stop the ticks [seen]: the first try
waits 500 ms; then the tenants are halved until the ones that are held stand alone,
20 ms each, for at most 3 s in all. PostgreSQL only: on SQLite the transaction that
inserts has the database to itself.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from django.db import OperationalError, connection, transaction

from audit import clock
from workqueue import sql

FIRST_TRY = 0.5  # seconds
EACH_HALF = 0.02  # seconds
IN_ALL = 3.0  # seconds
LOCKED = {"55P03", "57014", "40P01"}  # lock timeout, statement timeout, deadlock


class Insert(Protocol):
    """Insert for some tenants; return the number of rows."""

    def __call__(
        self, *, only: Collection[int] | None = None, without: Collection[int] = ()
    ) -> int:
        """`only`: these (None: all); `without`: not these."""


def spread(
    insert: Insert, *, everybody: Callable[[], Sequence[int]], last: Sequence[int] = ()
) -> tuple[int, list[int]]:
    """Insert for all but those that are held; return the count, and who was left out.

    `last`: tenants that were held before; they are tried after the others. Those left
    out come back with the ones that were not reached first, so that the next tick
    tries these before those that were found held.
    """
    if connection.vendor != "postgresql":
        return insert(), []
    deadline = clock.steady() + IN_ALL
    with _timeouts_kept():
        count = _try(insert, seconds=FIRST_TRY, left=IN_ALL, without=last)
        if count is not None and not last:
            return count, []
        parts = [list(last)] if last else []
        if count is None:
            parts.append([id for id in everybody() if id not in set(last)])
        return _halve(insert, parts, done=count or 0, deadline=deadline)


def _halve(
    insert: Insert, parts: list[list[int]], *, done: int, deadline: float
) -> tuple[int, list[int]]:
    """Work off `parts` from the end; what fails is split, what fails alone is held."""
    held: list[int] = []
    while parts and (left := deadline - clock.steady()) > 0:
        part = parts.pop()
        count = _try(insert, seconds=EACH_HALF, left=left, only=part)
        if count is not None:
            done += count
        elif len(part) == 1:
            held += part
        else:
            middle = len(part) // 2
            parts += [part[middle:], part[:middle]]
    not_reached = [id for part in reversed(parts) for id in part]
    return done, not_reached + held


def _try(
    insert: Insert,
    *,
    seconds: float,
    left: float,
    only: Collection[int] | None = None,
    without: Collection[int] = (),
) -> int | None:
    """None: a row that it needs is held."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.LOCK_TIMEOUT, [f"{seconds * 1000:.0f}ms"])
            cursor.execute(
                sql.STATEMENT_TIMEOUT, [f"{max(left, seconds) * 1000:.0f}ms"]
            )
            return insert(only=only, without=without)
    except OperationalError as problem:
        if getattr(problem.__cause__, "sqlstate", None) in LOCKED:
            return None
        raise


@contextmanager
def _timeouts_kept() -> Iterator[None]:
    """Leave the caller's timeouts as they were: SET LOCAL outlives a savepoint."""
    with connection.cursor() as cursor:
        cursor.execute(sql.TIMEOUTS)
        lock, statement = cursor.fetchone()
        yield
        cursor.execute(sql.LOCK_TIMEOUT, [lock])
        cursor.execute(sql.STATEMENT_TIMEOUT, [statement])
