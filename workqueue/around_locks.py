"""around_locks: insert for many tenants although somebody's open transaction holds a few.

An INSERT waits for a transaction that has inserted, or deleted, an item with the same
key and not yet ended. One slow caller must not stop the ticks [seen]: the first try
waits 500 ms; then the tenants are halved until the ones that are held stand alone,
20 ms each, for at most 3 s in all. Nor must a slow database: very many tenants, and
those whose INSERT takes most of the time, are cut into tenths, which come in random
order, so that who is not reached now is reached at one of the next ticks.
PostgreSQL only: on SQLite the transaction that inserts has the database to itself.
"""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from django.db import OperationalError, connection, transaction

from audit import clock
from workqueue import sql

AT_ONCE = 20_000  # tenants; more are never tried by one INSERT
FIRST_TRY = 0.5  # seconds
EACH_HALF = 0.02  # seconds
IN_ALL = 3.0  # seconds
MOST = 2 / 3  # of the time that is left, for one try: the rest is for its parts
LOCKED = {"55P03", "40P01"}  # lock timeout, deadlock
TIME_UP = "57014"  # statement timeout


class Insert(Protocol):
    """Insert for some tenants; return the number of rows."""

    def __call__(
        self, *, only: Collection[int] | None = None, without: Collection[int] = ()
    ) -> int:
        """`only`: these (None: all); `without`: not these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What was inserted, and who was left out."""

    count: int  # rows
    # Tenants whom somebody holds. At its beginning those who were found beside such, when
    # the time was up: the next tick tries them before the others.
    held: list[int]
    not_reached: int  # tenants for whom there was no time, whom nobody is known to hold


def spread(
    insert: Insert,
    *,
    called: int,
    everybody: Callable[[], Sequence[int]],
    last: Sequence[int] = (),
) -> Spread:
    """Insert for all but those that are held, and those that are not reached in time.

    `called`: how many there are at most. `last`: tenants that were held before; they are
    tried after the others.
    """
    if connection.vendor != "postgresql":
        return Spread(count=insert(), held=[], not_reached=0)
    deadline = clock.steady() + IN_ALL
    work = _Work(last)
    with _timeouts_kept():
        count, failed = 0, TIME_UP  # what can be expected of very many
        if called <= AT_ONCE:
            count, failed = _try(insert, seconds=FIRST_TRY, left=IN_ALL, without=last)
        if failed:
            before = set(last)
            work.cut([id for id in everybody() if id not in before], failed)
        return _work_off(insert, work, done=count, deadline=deadline)


class _Work:
    """Parts that wait for their try, and who was left out."""

    def __init__(self, last: Sequence[int]) -> None:
        self.fresh: list[list[int]] = []
        self.suspects = [list(last)] if last else []  # where somebody was held
        self.held: list[int] = []
        self.too_slow = 0  # tenants

    def cut(self, part: list[int], failed: str) -> None:
        """Have the parts of what failed wait: halves behind all others, tenths before them."""
        if len(part) <= 1:
            if failed in LOCKED:
                self.held += part
            else:
                self.too_slow += len(part)
        elif failed in LOCKED:
            middle = len(part) // 2
            self.suspects += [part[middle:], part[:middle]]
        else:  # half of it would take longer than what is left
            size = -(-len(part) // 10)
            tenths = [part[start : start + size] for start in range(0, len(part), size)]
            random.shuffle(tenths)
            self.fresh += tenths


def _work_off(insert: Insert, work: _Work, *, done: int, deadline: float) -> Spread:
    """Try the parts from the end of each list; what fails is cut, what fails alone is left out."""
    while (parts := work.fresh or work.suspects) and (
        left := deadline - clock.steady()
    ) > 0:
        part = parts.pop()
        count, failed = _try(insert, seconds=EACH_HALF, left=left, only=part)
        done += count
        if failed:
            work.cut(part, failed)
    beside = [id for part in reversed(work.suspects) for id in part]
    return Spread(
        count=done,
        held=beside + work.held,
        not_reached=work.too_slow + sum(map(len, work.fresh)),
    )


def _try(
    insert: Insert,
    *,
    seconds: float,
    left: float,
    only: Collection[int] | None = None,
    without: Collection[int] = (),
) -> tuple[int, str]:
    """The rows, and ""; or 0, and the SQLSTATE of why it was rolled back."""
    most = max(left * MOST, seconds)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.LOCK_TIMEOUT, [f"{seconds * 1000:.0f}ms"])
            cursor.execute(sql.STATEMENT_TIMEOUT, [f"{most * 1000:.0f}ms"])
            return insert(only=only, without=without), ""
    except OperationalError as problem:
        state = getattr(problem.__cause__, "sqlstate", None) or ""
        if state in LOCKED or state == TIME_UP:
            return 0, state
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
