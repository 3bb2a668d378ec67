"""expire: remove archive files that their policy keeps no longer, and mark them."""

import logging
from datetime import datetime

from django.conf import settings

from scheduler.handlers.archival import store
from scheduler.handlers.archival.models import ArchiveFile, ArchiveFileQuerySet
from scheduler.handlers.archival.select import Selected, cutoff

logger = logging.getLogger(__name__)

AT_ONCE = 500  # files


def expire(chosen: Selected, *, now: datetime) -> int:
    """Remove a tenant's files of one type past `archive_keep_days`; how many."""
    days = chosen.policy.archive_keep_days
    if days is None:
        return 0
    before = cutoff(now, keep_days=days, zone=settings.SERVER_TIME_ZONE)
    files = ArchiveFile.objects.present().filter(
        tenant_id=chosen.tenant_id,
        record_type=chosen.rows.name,
        created_at__lt=before,
    )
    return remove(files, now=now)


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
