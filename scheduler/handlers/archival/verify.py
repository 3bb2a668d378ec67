"""verify: read archive files again and compare them with what was written."""

import gzip
import hashlib
import logging
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import IO, cast

from scheduler.handlers.archival import store
from scheduler.handlers.archival.exceptions import NotAnArchive
from scheduler.handlers.archival.models import ArchiveFile

logger = logging.getLogger(__name__)

BLOCK = 1024 * 1024  # bytes read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a file holds."""

    rows: int
    bytes: int
    sha256_raw: str
    sha256_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a file is what was written."""

    path: str
    word: str  # ok | missing | changed | unreadable | removed
    text: str  # a sentence

    @property
    def bad(self) -> bool:
        """Rows may be lost."""
        return self.word in ("missing", "changed", "unreadable")


def verify(file: ArchiveFile, *, now: datetime) -> Verdict:
    """Compare one file with its digests; remember it when they are equal."""
    if file.deleted_at:
        text = f"removed by its policy on {file.deleted_at:%Y-%m-%d}"
        return Verdict(path=file.path, word="removed", text=text)
    try:
        found = measure(file.path)
    except NotAnArchive:
        text = f"the file is not in {store.place()}: restore it from a backup"
        return _told(Verdict(path=file.path, word="missing", text=text))
    except (OSError, EOFError, zlib.error) as problem:
        text = f"cannot be read ({problem}): restore it from a backup"
        return _told(Verdict(path=file.path, word="unreadable", text=text))
    wanted = Measured(
        rows=file.rows,
        bytes=file.bytes,
        sha256_raw=file.sha256_raw,
        sha256_file=file.sha256_file,
    )
    if found != wanted:
        text = (
            f"holds {found.rows} rows with sha256 {found.sha256_raw}, but {wanted.rows} rows"
            f" with sha256 {wanted.sha256_raw} were written: restore it from a backup"
        )
        return _told(Verdict(path=file.path, word="changed", text=text))
    file.mark_verified(at=now)
    return Verdict(path=file.path, word="ok", text=f"{found.rows} rows, as written")


def measure(name: str) -> Measured:
    """Read a file once and say what it holds. Raises NotAnArchive, OSError, EOFError, zlib.error."""
    with store.opened(name) as file:
        hashed = _Hashed(file)
        raw = hashlib.sha256()
        rows = 0
        with gzip.GzipFile(fileobj=cast(IO[bytes], hashed), mode="rb") as lines:
            while block := lines.read(BLOCK):
                raw.update(block)
                rows += block.count(b"\n")
        while hashed.read(BLOCK):
            pass  # what follows the last member is part of the file too
        return Measured(
            rows=rows,
            bytes=hashed.size,
            sha256_raw=raw.hexdigest(),
            sha256_file=hashed.digest.hexdigest(),
        )


def unregistered() -> Iterator[str]:
    """Files that no row speaks of: left by an interrupted run."""
    batch: list[str] = []
    for name in store.everything():
        if name.endswith(".jsonl.gz"):
            batch.append(name)
        if len(batch) == 500:
            yield from _without_row(batch)
            batch = []
    yield from _without_row(batch)


def _without_row(names: list[str]) -> list[str]:
    known = ArchiveFile.objects.filter(path__in=names).values_list("path", flat=True)
    return sorted(set(names) - set(known))


def _told(verdict: Verdict) -> Verdict:
    logger.error("archive file=%s %s: %s", verdict.path, verdict.word, verdict.text)
    return verdict


class _Hashed:
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: IO[bytes]) -> None:
        self.digest = hashlib.sha256()
        self.size = 0
        self._file = file

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.digest.update(block)
        self.size += len(block)
        return block
