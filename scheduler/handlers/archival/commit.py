"""commit: a written file and the deletion of its rows become one fact.

A crash before it leaves a file without a row; those are found and removed here too.
"""

import logging

from django.db import IntegrityError, transaction

from audit import clock
from scheduler.handlers.archival import store
from scheduler.handlers.archival.exceptions import ArchiveError
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.select import Selected
from scheduler.handlers.archival.write import Written, folder

logger = logging.getLogger(__name__)


def commit(chosen: Selected, written: Written) -> None:
    """Register the file and delete exactly its rows, or neither. Raises ArchiveError."""
    try:
        with transaction.atomic():
            _register(chosen, written)
            deleted = chosen.rows.delete(places=written.places, before=chosen.before)
            if deleted != len(written.places):
                raise ArchiveError(
                    f"archive: {len(written.places) - deleted} rows of {written.path} changed"
                    " while it was written; the next run writes it again (0 rows deleted)"
                )
    except IntegrityError as problem:
        _remove_unregistered(written.path)
        raise ArchiveError(
            f"archive: another attempt archived the rows of {written.path} meanwhile"
            f" (0 rows deleted): {problem}"
        ) from problem
    except ArchiveError:
        _remove_unregistered(written.path)
        raise
    _remove_superseded(chosen, written)


def remove_unfinished(chosen: Selected) -> None:
    """What an attempt that died was writing. No other lives: an item is unique."""
    below = folder(
        tenant=chosen.tenant,
        tenant_id=chosen.tenant_id,
        record_type=chosen.rows.name,
        at=None,
    )
    for name in store.everything(below):
        if name.endswith(store.TMP):
            store.remove(name)
            logger.info("%s removed: an interrupted run left it", name)


def _remove_superseded(chosen: Selected, written: Written) -> None:
    """Files without a row that begin with the same row and end within this one.

    An attempt that died after writing leaves such a file when the next one, under a
    later cutoff, writes more.
    """
    within = written.path.rpartition("/")[0]
    start = f"{within}/{chosen.rows.name}-{written.places[0].id}-"
    ends = {f"{start}{place.id}.jsonl.gz" for place in written.places[:-1]}
    for name in store.names(within):
        if name in ends and _remove_unregistered(name):
            logger.info("%s removed: %s holds its rows", name, written.path)


def _register(chosen: Selected, written: Written) -> None:
    first, last = written.places[0], written.places[-1]
    # What was put back and is written again under the same name.
    ArchiveFile.objects.restored().filter(path=written.path).delete()
    ArchiveFile.objects.create(
        tenant_id=chosen.tenant_id,
        tenant=chosen.tenant,
        record_type=chosen.rows.name,
        path=written.path,
        first_id=str(first.id),
        last_id=str(last.id),
        min_at=first.at,
        max_at=last.at,
        rows=written.measured.rows,
        bytes=written.measured.bytes,
        sha256_raw=written.measured.sha256_raw,
        sha256_file=written.measured.sha256_file,
        created_at=clock.DatabaseNow(),
    )


def _remove_unregistered(name: str) -> bool:
    """A file that no row speaks of, whose rows are in the table or in another one."""
    if ArchiveFile.objects.filter(path=name).exists():
        return False
    store.remove(name)
    return True
