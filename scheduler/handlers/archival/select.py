"""select: which policy holds for a tenant, where it cuts, and which rows are past it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import F, Q

from audit.retention import Place, Rows
from scheduler.handlers.archival.archivable import types
from scheduler.handlers.archival.models import ArchivalPolicy

BATCH = 5_000  # ids asked for at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """One policy, as it holds for one tenant now."""

    rows: Rows
    policy: ArchivalPolicy
    tenant_id: int
    tenant: str  # slug
    before: datetime  # rows that ended before leave the table


def cutoff(now: datetime, *, keep_days: int, zone: str) -> datetime:
    """Local midnight of today, `keep_days` days back; a row at exactly that instant stays.

    A midnight that does not exist is the first instant after the gap, one that
    occurs twice the first: both are what fold=0 means.
    """
    day = now.astimezone(ZoneInfo(zone)).date() - timedelta(days=keep_days)
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def selected(*, tenant_id: int, tenant: str, now: datetime) -> list[Selected]:
    """The enabled policies of a tenant, its own before the default, in the order of types."""
    both = ArchivalPolicy.objects.filter(Q(tenant=None) | Q(tenant=tenant_id))
    # The default first, so that the tenant's own takes its place.
    own = {p.record_type: p for p in both.order_by(F("tenant").asc(nulls_first=True))}
    return [
        Selected(
            rows=rows,
            policy=own[name],
            tenant_id=tenant_id,
            tenant=tenant,
            before=cutoff(
                now, keep_days=own[name].keep_days, zone=settings.SERVER_TIME_ZONE
            ),
        )
        for name, rows in types().items()
        if name in own and own[name].is_enabled
    ]


def places(chosen: Selected, *, after: Place | None) -> Iterator[Place]:
    """The rows past the policy behind `after`, oldest first, never read further than needed."""
    while True:
        batch = chosen.rows.places(
            tenant_id=chosen.tenant_id, before=chosen.before, after=after, limit=BATCH
        )
        yield from batch
        if len(batch) < BATCH:
            return
        after = batch[-1]
