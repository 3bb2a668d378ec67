"""sweep: what no tenant's policy speaks of; done by the platform's item.

Runs that found nothing (as long as their row of the timetable says), the nodes'
execution logs (a year), bulk operations (90 days), sessions that ended, rows and files
of tenants that were removed (by the default policies), months of the ledger in which
nothing is left.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction

from audit import retention
from scheduler.handlers.archival.archivable import types
from scheduler.handlers.archival.expire import remove
from scheduler.handlers.archival.models import ArchivalPolicy, ArchiveFile
from scheduler.handlers.archival.select import Selected, cutoff
from scheduler.handlers.operations.retention import delete_old
from workqueue import registry
from workqueue.models import Tenant

logger = logging.getLogger(__name__)

KEEP_NODE_EVENTS = timedelta(days=365)
BATCH = 5_000  # rows of one transaction
TENANTS_AT_ONCE = 100  # removed ones; the rest another night


@dataclass(slots=True, kw_only=True)
class Swept:
    """What a sweep removed."""

    empty_runs: int = 0
    node_events: int = 0
    operations: int = 0  # with their results
    sessions: int = 0
    expired_files: int = 0
    partitions: int = 0

    @property
    def rows(self) -> int:
        """Rows of tables."""
        return self.empty_runs + self.node_events + self.operations + self.sessions

    def told(self) -> dict[str, Any]:
        """For the run's details."""
        return {
            "rows": self.rows,
            "empty_runs": self.empty_runs,
            "node_events": self.node_events,
            "operations": self.operations,
            "sessions": self.sessions,
            "expired_files": self.expired_files,
            "partitions": self.partitions,
        }


def sweep(*, now: datetime, spent: Callable[[], bool]) -> Swept:
    """Do as much of it as the time allows: what is gone is not met again."""
    swept = Swept()
    for row in registry.rows().values():
        swept.empty_runs += _delete_empty(
            row.key, before=now - row.keep_empty, spent=spent
        )
    swept.node_events = _in_batches(
        lambda: retention.delete_node_events(
            before=now - KEEP_NODE_EVENTS, limit=BATCH
        ),
        spent=spent,
    )
    swept.operations = _in_batches(lambda: delete_old(now, limit=BATCH), spent=spent)
    swept.sessions = _in_batches(lambda: _delete_sessions(now), spent=spent)
    swept.expired_files = _expire_files_of_removed_tenants(now=now)
    if not spent():
        swept.partitions = retention.drop_partitions(now=now)
    logger.info(
        "swept: %s runs that found nothing, %s entries of execution logs, %s rows of bulk operations,"
        " %s sessions, %s files, %s months",
        swept.empty_runs,
        swept.node_events,
        swept.operations,
        swept.sessions,
        swept.expired_files,
        swept.partitions,
    )
    return swept


def of_removed_tenants(*, now: datetime) -> list[Selected]:
    """Rows that outlived their tenant, under the default policies."""
    found = []
    for policy in ArchivalPolicy.objects.defaults().enabled():
        if (rows := types().get(policy.record_type)) is None:
            continue
        before = cutoff(now, keep_days=policy.keep_days, zone=settings.SERVER_TIME_ZONE)
        strays = rows.strays(
            known=Tenant.objects.values("pk"), before=before, limit=TENANTS_AT_ONCE
        )
        found += [
            Selected(rows=rows, policy=policy, tenant_id=id, tenant=slug, before=before)
            for id, slug in strays.items()
        ]
    return found


def _expire_files_of_removed_tenants(*, now: datetime) -> int:
    removed = 0
    keep = ArchivalPolicy.objects.defaults().enabled().exclude(archive_keep_days=None)
    for record_type, days in keep.values_list("record_type", "archive_keep_days"):
        before = cutoff(now, keep_days=days or 0, zone=settings.SERVER_TIME_ZONE)
        files = ArchiveFile.objects.present().exclude(
            tenant_id__in=Tenant.objects.values("pk")
        )
        removed += remove(
            files.filter(record_type=record_type, created_at__lt=before), now=now
        )
    return removed


def _delete_empty(handler: str, *, before: datetime, spent: Callable[[], bool]) -> int:
    """Walk a handler's old runs once, a transaction for each BATCH that it looks at."""
    total, after = 0, None
    while not spent():
        with transaction.atomic():
            found, after = retention.delete_empty(
                handler=handler, before=before, after=after, limit=BATCH
            )
        total += found
        if after is None:
            break
    return total


def _in_batches(step: Callable[[], int], *, spent: Callable[[], bool]) -> int:
    """Repeat a step, a transaction each, until it finds nothing or the time is over."""
    total = 0
    while not spent():
        with transaction.atomic():
            found = step()
        total += found
        if found < BATCH:
            break
    return total


def _delete_sessions(now: datetime) -> int:
    """Of those that ended. Nothing else removes one that nobody signs out of."""
    ended = Session.objects.filter(expire_date__lt=now)
    keys = list(ended.order_by("expire_date").values_list("pk", flat=True)[:BATCH])
    return Session.objects.filter(pk__in=keys).delete()[0]
