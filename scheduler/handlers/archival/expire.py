"""expire: remove archive files that their policy keeps no longer, and mark them.

A file whose rows were put back goes as soon as they have left the table again: another
file holds them, or their policy deletes them for good.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings

from scheduler.handlers.archival import store
from scheduler.handlers.archival.models import ArchiveFile, ArchiveFileQuerySet
from scheduler.handlers.archival.select import Selected, cutoff

logger = logging.getLogger(__name__)

AT_ONCE = 500  # files


def expire(chosen: Selected, *, now: datetime) -> int:
    """Remove a tenant's files of one type past `archive_keep_days`, and restored ones; how many."""
    files = ArchiveFile.objects.present().filter(
        tenant_id=chosen.tenant_id, record_type=chosen.rows.name
    )
    removed = _remove_restored(chosen, files.restored())
    days = chosen.policy.archive_keep_days
    if days is None:
        return removed
    before = cutoff(now, keep_days=days, zone=settings.SERVER_TIME_ZONE)
    return removed + remove(files.filter(created_at__lt=before), now=now)


def _remove_restored(chosen: Selected, files: ArchiveFileQuerySet) -> int:
    """Those of which no row is in the table. Rows leave it oldest first."""
    removed = 0
    for file in files.order_by("max_at", "id")[:AT_ONCE]:
        past = file.max_at + timedelta(microseconds=1)
        if chosen.rows.count(tenant_id=chosen.tenant_id, before=past, at_most=1):
            break
        store.remove(file.path)
        file.delete()  # its name and its first row are free for what comes later
        removed += 1
        logger.info("%s removed: its restored rows have left the table", file.path)
    return removed


def remove(files: ArchiveFileQuerySet, *, now: datetime) -> int:
    """Remove files and mark them. A crash between the two leaves one that the next run marks."""
    removed = 0
    for file in files.order_by("created_at", "id")[:AT_ONCE]:
        store.remove(file.path)
        removed += file.mark_deleted(at=now)
        logger.info(
            "%s removed: written on %s, kept long enough",
            file.path,
            f"{file.created_at:%Y-%m-%d}",
        )
    return removed
