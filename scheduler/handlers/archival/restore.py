"""restore: the way back: print an archive file, or put its rows into the table again."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from django.db import IntegrityError, transaction

from audit import ledger
from audit.text import visible
from scheduler.handlers.archival import store
from scheduler.handlers.archival.archivable import type_of
from scheduler.handlers.archival.exceptions import ArchiveError, NotAnArchive
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.verify import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Rows that are in the table again."""

    path: str
    rows: int  # in the file
    inserted: int  # that were missing in the table


def registered(text: str) -> ArchiveFile:
    """The file that a person named by its path or its number. Raises NotAnArchive."""
    name = visible(store.name_of(text))
    files = ArchiveFile.objects.all()
    found = files.filter(path=name).first()
    if found is None and text.removeprefix("#").isdecimal():
        found = files.filter(pk=int(text.removeprefix("#"))).first()
    if found is None:
        raise NotAnArchive(f"archive: no registered archive file is called {text}")
    return found


def lines(name: str) -> Iterator[bytes]:
    """The lines of a file, registered or not. Raises NotAnArchive and ArchiveError."""
    with store.opened(name) as file:
        try:
            yield from gzip.GzipFile(fileobj=file, mode="rb")
        except (OSError, EOFError, zlib.error) as problem:
            raise ArchiveError(
                f"archive: {name} cannot be read: {problem}"
            ) from problem


def into_table(
    file: ArchiveFile, *, who: str, origin: str, why: str, now: datetime
) -> Restored:
    """Undo an archiving: its rows are in the table, and the file is marked, in one transaction.

    All of them or none. The file stays where it is until they have left the table again
    (`expire`). Refused for a file that is not what was written.
    """
    if file.restored_at:
        raise ArchiveError(
            f"archive: {file.path} was restored on {file.restored_at:%Y-%m-%d}: its rows are"
            " in the table, or in a later file by now (0 rows inserted)"
        )
    verdict = verify(file, now=now)
    if verdict.word != "ok":
        raise ArchiveError(f"archive: {file.path}: {verdict.text} (0 rows inserted)")
    try:
        inserted = _insert(file, who=who, origin=origin, why=why, now=now)
    except IntegrityError as problem:
        raise ArchiveError(
            f"archive: a row of {file.path} speaks of something that is gone, or there is"
            f" another with its key (0 rows inserted): {problem}"
        ) from problem
    return Restored(path=file.path, rows=file.rows, inserted=inserted)


def _insert(
    file: ArchiveFile, *, who: str, origin: str, why: str, now: datetime
) -> int:
    rows = type_of(file.record_type)
    with transaction.atomic():
        inserted = rows.insert(json.loads(line) for line in lines(file.path))
        file.mark_restored(at=now)
        ledger.change(
            who=who,
            origin=origin,
            subject=f"archive:{PurePosixPath(file.path).name}"[:200],
            verb="restored",
            old=_told(file),
            new={"rows": file.rows, "inserted": inserted},
            why=why,
            tenant_id=file.tenant_id,
        )
    return inserted


def _told(file: ArchiveFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "rows": file.rows,
        "sha256_file": file.sha256_file,
        "created_at": file.created_at.isoformat(),
    }
