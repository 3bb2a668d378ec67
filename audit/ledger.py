"""ledger: the only writer of what happened.

Everybody calls it directly, inside the transaction of what it tells of. Every text
passes the gate here; nothing that is written is ever changed.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, connection

from audit import clock, partitions, sql, text, wire
from audit.models import Change, Event, LateResult, NodeEvent

MOST = 2**31 - 1  # what a counter's column can hold; stands for that many or more


class RunRecord(NamedTuple):
    """An attempt that ended: the columns of `audit.Run` but finish_id.

    A tuple and no dataclass: a frozen one takes 7 microseconds to make, this 2, and
    20,000 a second are made. `zip` turns a batch into columns without a loop.
    """

    id: UUID  # = claim_id
    tenant_id: int
    tenant: str  # slug at the time
    handler: str
    trigger: str  # slot | start | operator | call
    enqueued_at: datetime
    finished_at: datetime
    outcome: str
    kind: str = "item"
    item_id: int | None = None
    dedup_key: str = ""
    tick_id: int | None = None
    slot: datetime | None = None
    claimed_at: datetime | None = None  # None: ended before any claim
    started_at: datetime | None = None  # None: never began
    node_id: UUID | None = None
    node: str = ""
    attempt: int = 0
    recoveries: int = 0
    seen: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    summary: str = ""
    error: str = ""
    details: Any = None  # JSON
    transcript: str = ""  # as Closed.short has it; passed the gate line by line
    line_count: int = 0
    dropped_lines: int = 0


class Ended(NamedTuple):
    """What the end of an attempt adds to what its item knows: the other columns of `audit.Run`."""

    id: UUID  # = claim_id
    started_at: datetime | None
    finished_at: datetime
    outcome: str
    seen: int
    changed: int
    skipped: int
    failed: int
    summary: str
    error: str
    details: Any  # JSON
    transcript: str
    line_count: int
    dropped_lines: int


class LateRecord(NamedTuple):
    """What an attempt reported after its claim had been taken from it: columns of `audit.LateResult`."""

    claim_id: UUID
    tenant_id: int
    tenant: str
    handler: str
    finished_at: datetime
    outcome: str
    node_id: UUID | None = None
    node: str = ""
    started_at: datetime | None = None
    seen: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    summary: str = ""
    error: str = ""
    transcript: str = ""


# Characters that the columns of keys and slugs hold.
_NAMES = {
    "kind": 8,
    "tenant": 64,
    "handler": 64,
    "dedup_key": 200,
    "trigger": 10,
    "node": 200,
    "outcome": 10,
}
_COUNTS = (
    "attempt",
    "recoveries",
    "seen",
    "changed",
    "skipped",
    "failed",
    "line_count",
    "dropped_lines",
)
_TEXTS = ("summary", "error")


def record(runs: Sequence[RunRecord], *, finish_id: UUID) -> None:
    """Write the runs of one finish, in the caller's transaction, by one statement."""
    if not runs:
        return
    gated = _columns(runs)
    try:
        if connection.vendor == "postgresql":
            _record(gated, finish_id)
        else:
            _record_sqlite(gated, finish_id, len(runs))
    except IntegrityError:
        partitions.forget()  # a partition may have been dropped meanwhile
        raise


def record_closed(
    ended: Sequence[Ended],
    *,
    first: str,
    close: str,
    params: Mapping[str, Any],
    finish_id: UUID,
) -> set[int]:
    """Write the runs of the items that the statement `close` ends, by one statement with it.

    PostgreSQL only, in the caller's transaction. `close` returns sql.CLOSED_COLUMNS;
    `first` has no parameters and goes ahead of it in the same round trip.
    Returns the ids of those items; what matched none is not written.
    """
    columns = {**_columns(ended), "kind": ["item"], "id": [e.id for e in ended]}
    varying, values = _parameters(columns, always=("id",))
    statement = sql.insert_closed(varying, close)
    try:
        rows = wire.fetch_after(
            first, statement, {**values, **params, "finish_id": finish_id}
        )
    except IntegrityError:
        partitions.forget()  # a partition may have been dropped meanwhile
        raise
    return {row[0] for row in rows}


def record_late(late: LateRecord) -> None:
    """Keep a result that came too late. A statement of its own, in database time."""
    values = late._asdict()
    for name in ("tenant", "handler", "node", "outcome"):
        values[name] = _name(values[name], _NAMES[name])
    for name in ("summary", "error", "transcript"):
        values[name] = text.gate(values[name])
    for name in ("seen", "changed", "skipped", "failed"):
        values[name] = _count(values[name])
    LateResult.objects.create(**values, arrived_at=clock.DatabaseNow())


def event(
    *,
    type: str,
    tenant_id: int,
    tenant: str,
    subject: str,
    data: dict[str, Any],
    severity: int = 1,
) -> None:
    """Tell the world, if and when the caller's transaction commits.

    `type`: "status.changed". `severity`: 0 debug .. 4 critical.
    """
    Event.objects.create(
        type=_name(type, 100),
        severity=severity,
        tenant_id=tenant_id,
        tenant=_name(tenant, 64),
        subject=text.gate(subject, limit=200),
        data=text.gate_json(data),
        occurred_at=clock.DatabaseNow(),
    )


def node_event(
    *,
    node_id: UUID,
    node: str,
    kind: str,
    type: str,
    text: str = "",
    term: int | None = None,
) -> None:
    """Write a line into a process's execution log. `type`: a value of NodeEvent.Type."""
    NodeEvent.objects.create(
        node_id=node_id,
        node=_name(node, 200),
        kind=kind,
        type=type,
        text=_gate(text),
        term=term,
        at=clock.DatabaseNow(),
    )


def change(
    *,
    who: str,
    origin: str,
    subject: str,
    verb: str,
    old: object = None,
    new: object = None,
    why: str = "",
    tenant_id: int | None = None,
) -> None:
    """Write down what an operator changed, in the transaction that changes it.

    `origin`: admin | command | api | engine. `subject`: "setting:Worker Node Configuration".
    """
    Change.objects.create(
        who=_name(who, 150),
        origin=_name(origin, 8),
        subject=text.gate(subject, limit=200),
        verb=_name(verb, 30),
        old=text.gate_json(old),
        new=text.gate_json(new),
        why=text.gate(why),
        tenant_id=tenant_id,
        at=clock.DatabaseNow(),
    )


def make_partitions(now: datetime) -> list[str]:
    """Make the partitions of this month and the next three; the names of the new ones. For the master, daily."""
    return partitions.ensure(now)


# `node_event` has a parameter of the module's name.
_gate = text.gate


def _columns(rows: Sequence[RunRecord] | Sequence[Ended]) -> dict[str, Sequence[Any]]:
    """Rows as columns that may be stored, in a partition that exists."""
    columns = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
    ends = columns["finished_at"]
    partitions.make_room("audit_run", (min(ends), max(ends)))
    return {name: _gated(name, column) for name, column in columns.items()}


def _gated(name: str, column: Sequence[Any]) -> Sequence[Any]:
    """A column as it may be stored. What is equal in all rows is looked at once."""
    first = column[0]
    if first == column[-1] and column.count(first) == len(column):
        return [_value(name, first)]
    if name in _NAMES:
        size = _NAMES[name]
        joined = "".join(column)
        # Keys and slugs come from columns of the same width: one look for the batch.
        clean = (
            joined.isascii() and "\0" not in joined and max(map(len, column)) <= size
        )
        return list(column) if clean else [_name(value, size) for value in column]
    if name in _TEXTS or name in _COUNTS or name == "details":
        return [_value(name, value) for value in column]
    return list(column)


def _value(name: str, value: Any) -> Any:
    if name in _NAMES:
        return _name(value, _NAMES[name])
    if name in _COUNTS:
        return _count(value)
    if name in _TEXTS:
        return text.gate(value) if value else ""
    if name == "details" and value is not None:
        return json.dumps(text.gate_json(value))
    return value


def _name(value: str, size: int) -> str:
    """A key, a slug, who: made storable, but never masked, or rows could not be told apart."""
    return text.cut(text.visible(text.as_text(value)), limit=size)


def _count(value: int) -> int:
    return max(-MOST, min(MOST, int(value)))


def _record(columns: dict[str, Sequence[Any]], finish_id: UUID) -> None:
    varying, params = _parameters(columns)
    wire.send(sql.insert_runs(varying), {**params, "finish_id": finish_id})


def _parameters(
    columns: Mapping[str, Sequence[Any]], *, always: Collection[str] = ()
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The columns that travel as arrays, and all parameters: what is equal in all rows goes once."""
    varying = tuple(
        name
        for name in sql.RUN_TYPES
        if name in always or len(columns.get(name, ())) > 1
    )
    return varying, {
        name: values if name in varying else values[0]
        for name, values in columns.items()
    }


def _record_sqlite(
    columns: dict[str, Sequence[Any]], finish_id: UUID, count: int
) -> None:
    given = {**columns, "finish_id": [finish_id]}
    whole = [
        values if len(values) > 1 else repeat(values[0], count)
        for values in (given[name] for name in sql.RUN_TYPES)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            sql.INSERT_RUN,
            [[_plain(value) for value in row] for row in zip(*whole, strict=True)],
        )


def _plain(value: Any) -> Any:
    """As Django's fields write it into SQLite."""
    if isinstance(value, UUID):
        return value.hex
    return (
        connection.ops.adapt_datetimefield_value(value)
        if isinstance(value, datetime)
        else value
    )
