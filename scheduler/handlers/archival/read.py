"""read: the rows past a policy as lines of JSON; those that cannot be said are set aside."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import batched
from typing import Any
from uuid import UUID

from django.db import DataError

from audit.retention import CHUNK, Place, Record
from scheduler.handlers.archival.exceptions import ArchiveError
from scheduler.handlers.archival.select import Selected, places
from workqueue.context import Context

logger = logging.getLogger(__name__)

MAX_BAD = 1_000  # rows; with more, something else is wrong
# What a value raises that this program cannot hold: a number beyond a float, a year
# beyond 9999, text that is no JSON. A lost connection is none of them.
UNREADABLE = (ValueError, TypeError, ArithmeticError, DataError)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that stays in the table."""

    place: Place
    error: str


def lines(
    chosen: Selected, *, ctx: Context, bad: list[BadRow]
) -> Iterator[tuple[Place, bytes]]:
    """Rows past the policy, oldest first. Bad ones are counted, written to the transcript, put in `bad`."""
    for part in batched(places(chosen, after=None), CHUNK, strict=False):
        for place, found in _read(chosen, part):
            raw = None
            with ctx.record(chosen.rows.name, place.id):
                try:
                    raw = line(_record(found))
                except UNREADABLE as problem:
                    error = f"{type(problem).__name__}: {problem}"[:500]
                    bad.append(BadRow(place=place, error=error))
                    raise
            if raw is not None:
                yield place, raw
        if len(bad) >= MAX_BAD:
            raise ArchiveError(
                f"archive: {len(bad)} {chosen.rows.name} of {chosen.tenant} cannot be written;"
                " their ids and errors stand in the newest -bad.jsonl"
            )


def line(record: Record) -> bytes:
    """One row as the file has it. Raises ValueError or TypeError for what JSON cannot say."""
    text = json.dumps(
        record,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
        default=_plain,
    )
    return text.encode() + b"\n"


def _read(
    chosen: Selected, part: tuple[Place, ...]
) -> Iterator[tuple[Place, Record | Exception]]:
    """The rows of a chunk; where one cannot even be read, the rest of the chunk one by one."""
    positions = {place.id: number for number, place in enumerate(part)}
    done = 0
    try:
        for record in chosen.rows.records(part):
            position = positions[record["id"]]
            yield part[position], record
            done = position + 1
        return
    except UNREADABLE as problem:
        logger.warning(
            "%s: a row cannot be read (%s), looking for it",
            chosen.rows.name,
            type(problem).__name__,
        )
    for place in part[done:]:
        try:
            found = list(chosen.rows.records([place]))
        except UNREADABLE as problem:
            yield place, problem
        else:
            yield from ((place, record) for record in found)


def _record(found: Record | Exception) -> Record:
    if isinstance(found, Exception):
        raise found
    return found


def _plain(value: Any) -> str:
    """Times in UTC to the microsecond, with Z."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in an archive")
