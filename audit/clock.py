"""Database time, and identifiers that carry it.

`now()` serves slots, labels and durations. Deadlines that are stored and compared
use the database's clock inside the statement: `DatabaseNow` in the ORM, the
parameter `fixed()` in raw SQL. Node clocks decide nothing.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

MAX_ROUND_TRIP = 0.2  # seconds; a slower sample says too little, once there is one
# CLOCK_BOOTTIME goes on while the machine sleeps; not every system has it.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_anchor: tuple[float, float] | None = None  # (steady seconds, database epoch seconds)
_fixed: datetime | None = None


def now() -> datetime:
    """Database time, from the last sample taken; this machine's clock before any."""
    if _fixed is not None:
        return _fixed
    if (anchor := _anchor) is None:
        return datetime.fromtimestamp(time.time(), UTC)
    return datetime.fromtimestamp(
        anchor[1] + time.clock_gettime(_STEADY) - anchor[0], UTC
    )


def steady() -> float:
    """Seconds that only grow, also while the machine sleeps: for deadlines in memory."""
    return time.clock_gettime(_STEADY)


def sample(*, database: datetime, sent: float, received: float) -> bool:
    """Take a sample: `database` was read between `sent` and `received` (steady()).

    False: the round trip took over MAX_ROUND_TRIP and the sample was thrown away. The
    first is taken in any case: it is wrong by half its round trip at most, where this
    machine's clock may be wrong by days.
    """
    global _anchor
    if _anchor and received - sent > MAX_ROUND_TRIP:
        return False
    _anchor = ((sent + received) / 2, database.timestamp())
    return True


def skew() -> timedelta:
    """This machine's clock minus the database's. Shown, never used."""
    if _anchor is None:
        return timedelta()
    return datetime.fromtimestamp(time.time(), UTC) - now()


def fixed() -> datetime | None:
    """The instant that tests put in place of the database's clock, or None.

    Raw SQL writes COALESCE(%(now)s::timestamptz, clock_timestamp()).
    """
    return _fixed


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """Stop all clocks of this process at `moment`, the database's in statements too. Tests only."""
    global _fixed
    before, _fixed = _fixed, moment.astimezone(UTC)
    try:
        yield
    finally:
        _fixed = before


class DatabaseNow(models.Func):
    """The database's clock inside a statement; moves within a transaction.

    `DatabaseNow()` for what is written and one-row checks. `DatabaseNow(once=True)`
    in conditions on indexed columns: a volatile function never uses an index.
    """

    output_field = models.DateTimeField()

    def __init__(self, *, once: bool = False) -> None:
        """`once`: evaluate it one time per statement."""
        super().__init__()
        self.once = once

    def as_sql(
        self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any
    ) -> tuple[str, tuple[Any, ...]]:
        """clock_timestamp(), which SQLite has as a registered function."""
        if _fixed is not None:
            value = connection.ops.adapt_datetimefield_value(_fixed)
            cast = "%s::timestamptz" if connection.vendor == "postgresql" else "%s"
            return cast, (value,)
        return ("(SELECT clock_timestamp())" if self.once else "clock_timestamp()"), ()


def later(seconds: float) -> DatabaseNow:
    """The database's clock plus `seconds`, inside the statement."""
    return _Shifted(seconds)


def earlier(age: timedelta) -> DatabaseNow:
    """The database's clock minus `age`, once per statement: for conditions on indexed columns."""
    return _Shifted(-age.total_seconds(), once=True)


class _Shifted(DatabaseNow):
    """DatabaseNow plus a number of seconds, in both databases' own words."""

    def __init__(self, seconds: float, *, once: bool = False) -> None:
        """`seconds` may be negative."""
        super().__init__(once=once)
        self.seconds = seconds

    def as_sql(
        self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any
    ) -> tuple[str, tuple[Any, ...]]:
        """An interval on PostgreSQL; SQLite's registered function takes the shift."""
        if connection.vendor == "postgresql":
            text, params = super().as_sql(compiler, connection)
            shifted = f"({text} + make_interval(secs => %s::float8))"
            return shifted, (*params, self.seconds)
        return "clock_timestamp(%s)", (self.seconds,)


def uuid7(moment: datetime | None = None) -> UUID:
    """A UUIDv7 of `moment` (default: now()): sorts by its time, unique by 74 random bits."""
    milliseconds = int((moment or now()).timestamp() * 1000)
    rest = int.from_bytes(os.urandom(10))
    value = milliseconds << 80 | rest
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def uuid7_time(id: UUID) -> datetime:
    """The instant inside a UUIDv7, to the millisecond."""
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def register_functions(*, connection: BaseDatabaseWrapper, **_: object) -> None:
    """Give SQLite clock_timestamp() and uuid7(), in Django's own formats."""
    if connection.vendor == "sqlite":
        connection.connection.create_function("clock_timestamp", -1, _sqlite_now)
        connection.connection.create_function(
            "uuid7", 0, lambda: uuid7(datetime.fromtimestamp(time.time(), UTC)).hex
        )


def _sqlite_now(shift: float = 0.0) -> str:
    moment = (_fixed or datetime.fromtimestamp(time.time(), UTC)) + timedelta(
        seconds=shift
    )
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
