"""partitions: monthly ranges of runs and lines on PostgreSQL; nothing to do on SQLite.

Made three months ahead: by the migration, by the master every day, and by the
writer that finds none. Dropped when their range has ended and nothing is left in
them. There is no default partition: attaching beside one would have to read it all
under a lock that no finish passes.

Months are those of UTC. All DDL happens on a connection of its own, so that its locks
live for milliseconds however long the caller's transaction lives.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.operations import CreateModel
from django.db.models import CompositePrimaryKey, UUIDField
from psycopg import Connection, Error

from audit import clock, sql

logger = logging.getLogger(__name__)

PARENTS = ("audit_run", "audit_line")
AHEAD = 3  # months after the present one
LOCK_TIMEOUT = "1s"
# Rows stamped in the last moments of a month may still be on their way.
SETTLED = timedelta(days=1)
_ALONE = 0x6D696C6C72616365  # key of the advisory lock of whoever makes a partition: "millrace"
_BOUNDS = re.compile(r"FROM \('([^']+)'\) TO \('([^']+)'\)")

NEVER = datetime.max.replace(tzinfo=UTC)
# Months that this process has seen to exist: (database, parent, first instant).
_seen: set[tuple[str, str, datetime]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One month of one table."""

    parent: str
    name: str
    low: datetime  # inclusive
    high: datetime  # exclusive
    detaching: bool  # a DETACH CONCURRENTLY was cut short and waits to be finished


def month(moment: datetime) -> datetime:
    """The first instant of the month, in UTC."""
    return moment.astimezone(UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )


def following(low: datetime) -> datetime:
    """The first instant of the month after."""
    return month(low + timedelta(days=32))


def name_of(parent: str, low: datetime) -> str:
    """The name of a month's partition: audit_run_2026_11."""
    return f"{parent}_{low:%Y_%m}"


def make_room(parent: str, moments: Iterable[datetime]) -> None:
    """See that the table takes rows of these moments, before they are written.

    For writers: one look per process and month. A month that has ended is looked for
    each time, since it may have been dropped. Works inside any transaction of the
    caller, who sees the new partition at his next statement.
    """
    if connection.vendor != "postgresql":
        return
    database = str(connection.settings_dict["NAME"])
    present = month(clock.now())
    for low in {month(moment) for moment in moments}:
        if (database, parent, low) in _seen and low >= present:
            continue
        with connection.cursor() as cursor:
            cursor.execute(
                sql.IS_PARTITION, {"parent": parent, "partition": name_of(parent, low)}
            )
            row = cursor.fetchone()
        if row is None or row[0]:
            with _own_connection() as own:
                _make(own, parent, low)
        _seen.add((database, parent, low))


def forget() -> None:
    """Look again before the next write: a partition that was there may be gone."""
    _seen.clear()


def ensure(now: datetime) -> list[str]:
    """Make this month's partitions and those of the next three; the names of the new ones."""
    if connection.vendor != "postgresql":
        return []
    with _own_connection() as own:
        return _ensure(own, now)


def ensure_in_migration(*, now: datetime, using: BaseDatabaseWrapper) -> None:
    """As `ensure`, on the migration's own connection: nobody else sees its tables yet."""
    if using.vendor != "postgresql":
        return
    _ensure(cast(Connection[Any], using.connection), now)


def drop_empty(now: datetime) -> list[str]:
    """Drop what has ended and holds nothing any more; the names of what was dropped.

    One at a time. A drop that waits for somebody's lock gives up after a second and is
    taken up by the next call.
    """
    if connection.vendor != "postgresql":
        return []
    dropped: list[str] = []
    with _own_connection() as own:
        for parent in PARENTS:
            try:
                dropped += _drop_empty(own, parent, now)
            except (
                DatabaseError,
                Error,
            ) as problem:  # Django's, or straight from psycopg
                logger.warning(
                    "partitions of %s are dropped later: %s",
                    parent,
                    " ".join(str(problem).split()),
                )
    forget()
    return dropped


def existing(parent: str) -> list[Partition]:
    """The table's partitions, oldest first. None on SQLite."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(sql.PARTITIONS, {"parent": parent})
        return [_partition(parent, *row) for row in cursor.fetchall()]


class CreatePartitionedModel(CreateModel):
    """CreateModel whose table PostgreSQL partitions. The model's state is untouched.

    The database's key must hold the partition's column, so it is wider than Django's.
    """

    def __init__(
        self, *args: Any, by: str, key: tuple[str, ...], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.by = by
        self.key = key

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Create the table with the wider key and its PARTITION BY."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        state = to_state.clone()
        model = state.models[app_label, self.name_lower]
        fields = {name: field for name, field in model.fields.items() if name != "pk"}
        fields = {
            name: UUIDField() if field.primary_key else field
            for name, field in fields.items()
        }
        model.fields = {"pk": CompositePrimaryKey(*self.key), **fields}
        state.reload_model(app_label, self.name_lower)
        plain = schema_editor.sql_create_table
        schema_editor.sql_create_table = (
            f"{plain} PARTITION BY RANGE ({schema_editor.quote_name(self.by)})"
        )
        try:
            super().database_forwards(app_label, schema_editor, from_state, state)
        finally:
            schema_editor.sql_create_table = plain


def _ensure(raw: Connection[Any], now: datetime) -> list[str]:
    made = []
    for parent in PARENTS:
        low = month(now)
        for _ in range(AHEAD + 1):
            if _make(raw, parent, low):
                made.append(name_of(parent, low))
            low = following(low)
    return made


def _make(raw: Connection[Any], parent: str, low: datetime) -> bool:
    """Make one partition, all or nothing. False: somebody else just did."""
    names = {"parent": parent, "partition": name_of(parent, low)}
    bounds = {"low": low.isoformat(), "high": following(low).isoformat()}
    with raw.transaction():
        raw.execute(sql.WAIT_AT_MOST, {"timeout": LOCK_TIMEOUT, "local": True})
        raw.execute(sql.ALONE, {"key": _ALONE})
        row = raw.execute(sql.IS_PARTITION, names).fetchone()
        if row and not row[0]:
            return False
        if row:
            raw.execute(sql.FINALIZE.format(**names))
        if not _flag(raw, sql.EXISTS, names):
            raw.execute(sql.COPY_SHAPE.format(**names))
        raw.execute(sql.ATTACH.format(**names, **bounds))
    logger.info("partition made name=%s", names["partition"])
    return True


def _drop_empty(raw: Connection[Any], parent: str, now: datetime) -> Iterator[str]:
    for partition in existing(parent):
        if partition.detaching:
            raw.execute(sql.FINALIZE.format(parent=parent, partition=partition.name))
    yield from _drop_strays(raw, parent)
    for partition in existing(parent):
        names = {"parent": parent, "partition": partition.name}
        if partition.high + SETTLED > now or _flag(
            raw, sql.HAS_ROWS.format(**names), {}
        ):
            continue
        raw.execute(sql.DETACH.format(**names))
        if _flag(raw, sql.HAS_ROWS.format(**names), {}):  # written in the meantime
            _make(raw, parent, partition.low)
            continue
        raw.execute(sql.DROP.format(**names))
        logger.info("partition dropped name=%s", partition.name)
        yield partition.name


def _drop_strays(raw: Connection[Any], parent: str) -> Iterator[str]:
    """What a pass that was cut short detached. With rows in it, it is left to an operator."""
    for (name,) in raw.execute(sql.STRAYS, {"parent": parent}).fetchall():
        if _flag(raw, sql.HAS_ROWS.format(partition=name), {}):
            logger.warning(
                "table %s is a detached partition of %s and holds rows: attach it again, or drop it",
                name,
                parent,
            )
        else:
            raw.execute(sql.DROP.format(partition=name))
            yield name


def _flag(raw: Connection[Any], statement: str, params: dict[str, Any]) -> bool:
    row = raw.execute(statement, params).fetchone()
    return bool(row and row[0])


def _partition(parent: str, name: str, bounds: str, detaching: bool) -> Partition:
    found = _BOUNDS.search(bounds or "")
    low, high = map(datetime.fromisoformat, found.groups()) if found else (NEVER, NEVER)
    return Partition(
        parent=parent,
        name=name,
        low=low.astimezone(UTC),
        high=high.astimezone(UTC),
        detaching=detaching,
    )


@contextmanager
def _own_connection() -> Iterator[Connection[Any]]:
    """A connection beside the caller's transaction and outside the pool, in autocommit."""
    wrapper = connection.copy()
    wrapper.settings_dict["OPTIONS"].pop("pool", None)
    try:
        with wrapper.wrap_database_errors:
            wrapper.connect()
            raw = cast(Connection[Any], wrapper.connection)
            raw.execute(sql.WAIT_AT_MOST, {"timeout": LOCK_TIMEOUT, "local": False})
            yield raw
    finally:
        wrapper.close()
