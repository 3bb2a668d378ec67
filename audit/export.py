"""export: all rows that match, as CSV or JSON lines, written as they are read.

A thousand rows at a time by keyset: memory stays small, no transaction or snapshot lives
as long as the download, and five million rows take what they take. A search that the
database ends breaks the download off, which every client reports: a file that is shorter
than it says does not exist.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import models
from django.http import StreamingHttpResponse

from audit import clock, keyset, lengths
from audit.filters import Filters
from audit.models import Change, Run

AT_ONCE = 1000  # rows
SIFT_MS = 2000  # milliseconds that a batch is sifted before the next one begins
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what begins so
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson; charset=utf-8",
}


class BrokenOff(Exception):
    """The database ended the search in the middle of the file."""


@dataclass(frozen=True, slots=True)
class Export:
    """What of a row is written, under which names, in this order."""

    name: str  # of the file
    time: str  # what the list is ordered by
    fields: Mapping[str, Callable[[Any], Any]]


def response(export: Export, filters: Filters, *, form: str) -> StreamingHttpResponse:
    """The file, newest row first. `form`: csv or jsonl."""
    write = _csv if form == "csv" else _jsonl
    answer = StreamingHttpResponse(
        write(export, rows(export, filters)), content_type=TYPES[form]
    )
    name = f"{export.name}-{clock.now():%Y%m%d-%H%M%S}.{form}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    answer["X-Accel-Buffering"] = "no"
    return answer


def rows(export: Export, filters: Filters) -> Iterator[models.Model]:
    """Every row that matches."""
    walked, sieve, older = filters.walked, filters.sieve, ""
    while True:
        page = keyset.page(
            walked,
            time=export.time,
            older=older,
            size=AT_ONCE,
            sieve=sieve,
            sift_ms=SIFT_MS,
        )
        if page.slow:
            raise BrokenOff
        yield from page.rows
        if not (older := page.older):
            return


def _csv(export: Export, found: Iterator[models.Model]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield "\ufeff"  # spreadsheets take the file for UTF-8 only by this
    yield writer.writerow(export.fields)
    for row in found:
        yield writer.writerow(_cell(value(row)) for value in export.fields.values())


def _jsonl(export: Export, found: Iterator[models.Model]) -> Iterator[str]:
    for row in found:
        line = {name: value(row) for name, value in export.fields.items()}
        yield json.dumps(line, ensure_ascii=False) + "\n"


class _Echo:
    """What csv writes to: it hands the line back."""

    def write(self, line: str) -> str:
        return line


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def _moment(name: str) -> Callable[[Any], str | None]:
    def value(row: Any) -> str | None:
        found: datetime | None = getattr(row, name)
        if found is None:
            return None
        utc = found.astimezone(UTC).isoformat(timespec="milliseconds")
        return utc.replace("+00:00", "Z")

    return value


def _plain(name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name)


def _text(name: str) -> Callable[[Any], str | None]:
    return lambda row: None if (found := getattr(row, name)) is None else str(found)


def between(start: str, end: str) -> Callable[[Any], int | None]:
    """Milliseconds between two columns."""
    return _ms(lambda row: lengths.between(getattr(row, start), getattr(row, end)))


def _ms(length: Callable[[Any], timedelta | None]) -> Callable[[Any], int | None]:
    def value(row: Any) -> int | None:
        found = length(row)
        return None if found is None else round(found.total_seconds() * 1000)

    return value


def fields_of(
    model: type[models.Model], *names: str
) -> dict[str, Callable[[Any], Any]]:
    """Columns by their type: times as ISO in UTC, ids as text."""
    found = {}
    for name in names:
        field = model._meta.get_field(name)
        if isinstance(field, models.DateTimeField):
            found[name] = _moment(name)
        else:
            uuid = isinstance(field, models.UUIDField)
            found[name] = _text(name) if uuid else _plain(name)
    return found


RUNS = Export(
    name="runs",
    time="finished_at",
    fields={
        **fields_of(
            Run, "id", "outcome", "handler", "dedup_key", "tenant", "tenant_id",
            "trigger", "slot", "tick_id", "item_id", "attempt", "recoveries",
            "enqueued_at", "claimed_at", "started_at", "finished_at",
        ),
        "waited_ms": _ms(lengths.waited),
        "ran_ms": _ms(lengths.ran),
        **fields_of(
            Run, "node", "node_id", "seen", "changed", "skipped", "failed", "summary",
            "error", "details", "line_count", "dropped_lines",
        ),
    },
)  # fmt: skip
JOB_LOGS = replace(RUNS, name="job-logs")
CHANGES = Export(
    name="changes",
    time="at",
    fields=fields_of(
        Change, "id", "at", "who", "origin", "verb", "subject", "tenant_id", "old", "new", "why",
    ),
)  # fmt: skip
