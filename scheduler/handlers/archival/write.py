"""write: rows past their policy into files; the same rows always make the same bytes.

JSON Lines, keys sorted, compact, UTF-8, gzip level 6 without time or name; at most
50,000 rows or 64 MB of lines and one month a file. A row that cannot be written goes
into a -bad.jsonl with its error and stays in the table.
"""

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from audit.retention import Place
from scheduler.handlers.archival import store
from scheduler.handlers.archival.exceptions import ArchiveError
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.read import BadRow, lines
from scheduler.handlers.archival.select import Selected
from scheduler.handlers.archival.verify import Measured, measure
from workqueue.context import Context

MAX_ROWS = 50_000
MAX_RAW = 64 * 1024 * 1024  # bytes of lines
# No flags, no time, no name, no hint, system unknown: nothing of the machine that wrote it.
GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
_SLUG = re.compile(r"[-a-zA-Z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that was read back and found equal to its rows."""

    path: str
    places: tuple[Place, ...]  # its rows, in order
    measured: Measured


def write(
    chosen: Selected, *, ctx: Context, spent: Callable[[], bool]
) -> Iterator[Written]:
    """Write one file after the other; the caller deletes its rows before it asks for the next.

    Once `spent` says so, the file in hand is ended early and is the last. Raises
    ArchiveError; then the file in hand is gone and its rows stay.
    """
    draft: _Draft | None = None
    bad: list[BadRow] = []
    try:
        for place, raw in lines(chosen, ctx=ctx, bad=bad):
            if draft and not draft.takes(place, raw):
                written, draft = draft.finish(), None
                yield written
            if spent():
                break
            draft = draft or _Draft(chosen, first=place, claim_id=ctx.claim_id)
            draft.add(place, raw)
        if draft:
            written, draft = draft.finish(), None
            yield written
    finally:
        if draft:
            draft.discard()
        _write_bad(chosen, bad)


def folder(
    *, tenant: str, tenant_id: int, record_type: str, at: datetime | None
) -> str:
    """Where files lie, below the root; without a time, the folder of all months."""
    # A slug that came in by SQL may hold anything, but never leads out of its place.
    owner = tenant if _SLUG.fullmatch(tenant) else f"tenant-{tenant_id}"
    base = f"{owner}/{record_type}"
    return f"{base}/{at.astimezone(UTC):%Y/%m}" if at else base


class _Draft:
    """A file being written."""

    def __init__(self, chosen: Selected, *, first: Place, claim_id: UUID) -> None:
        self._type = chosen.rows.name
        self._folder = folder(
            tenant=chosen.tenant,
            tenant_id=chosen.tenant_id,
            record_type=self._type,
            at=first.at,
        )
        self._tmp = f"{self._folder}/{self._type}-{first.id}-{claim_id}"
        self._places: list[Place] = []
        self._digest = hashlib.sha256()
        self._size = 0
        _refuse_registered(chosen, first)
        with _telling(self._tmp):
            self._file = store.create(self._tmp)
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._checksum = 0

    def takes(self, place: Place, raw: bytes) -> bool:
        """Whether a row still fits in."""
        return (
            len(self._places) < MAX_ROWS
            and self._size + len(raw) <= MAX_RAW
            and _month(place) == _month(self._places[0])
        )

    def add(self, place: Place, raw: bytes) -> None:
        """Append a row."""
        with self._discarded_on_error():
            self._file.write(b"" if self._places else GZIP_HEADER)
            self._file.write(self._deflate.compress(raw))
        self._checksum = zlib.crc32(raw, self._checksum)
        self._digest.update(raw)
        self._size += len(raw)
        self._places.append(place)

    def finish(self) -> Written:
        """Publish it under its name, read it back, compare."""
        first, last = self._places[0], self._places[-1]
        name = f"{self._folder}/{self._type}-{first.id}-{last.id}.jsonl.gz"
        with self._discarded_on_error():
            self._file.write(self._deflate.flush())
            self._file.write(struct.pack("<II", self._checksum, self._size))
            store.publish(self._file, tmp=self._tmp, name=name)
        with _telling(name):
            measured = measure(name)
        if (measured.rows, measured.sha256_raw) != (
            len(self._places),
            self._digest.hexdigest(),
        ):
            store.remove(name)
            raise ArchiveError(
                f"archive: {name} was read back and is not what was written (0 rows deleted)"
            )
        return Written(path=name, places=tuple(self._places), measured=measured)

    def discard(self) -> None:
        """Leave nothing behind."""
        store.discard(self._file, tmp=self._tmp)

    @contextmanager
    def _discarded_on_error(self) -> Iterator[None]:
        try:
            with _telling(self._tmp):
                yield
        except ArchiveError:
            self.discard()
            raise


def _month(place: Place) -> str:
    return f"{place.at.astimezone(UTC):%Y/%m}"


@contextmanager
def _telling(name: str) -> Iterator[None]:
    """Say in one line which file the disk refused, and that no row was lost."""
    try:
        yield
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise ArchiveError(
            f"archive: {reason} while writing {name} in {store.place()} (0 rows deleted)"
        ) from problem


def _refuse_registered(chosen: Selected, first: Place) -> None:
    """Never write over a file that holds rows which were deleted."""
    registered = ArchiveFile.objects.filter(
        tenant_id=chosen.tenant_id,
        record_type=chosen.rows.name,
        first_id=str(first.id),
        restored_at=None,
    ).first()
    if registered:
        raise ArchiveError(
            f"archive: row {first.id} is in the table although {registered.path} holds it."
            f" Compare them (manage.py archive restore {registered.path} --print) and delete"
            " the row (0 rows deleted)"
        )


def _write_bad(chosen: Selected, bad: list[BadRow]) -> None:
    """Beside the good ones: which rows stay in the table, and why."""
    if not bad:
        return
    within = folder(
        tenant=chosen.tenant,
        tenant_id=chosen.tenant_id,
        record_type=chosen.rows.name,
        at=bad[0].place.at,
    )
    first, last = bad[0].place.id, bad[-1].place.id
    name = f"{within}/{chosen.rows.name}-{first}-{last}-bad.jsonl"
    rows = (
        json.dumps({"error": row.error, "id": str(row.place.id)}, separators=(",", ":"))
        for row in bad
    )
    with _telling(name):
        store.put(name, "".join(f"{row}\n" for row in rows).encode())
