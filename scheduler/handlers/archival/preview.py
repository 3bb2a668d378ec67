"""preview: how many rows a policy would take out of its table if it ran now."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from scheduler.handlers.archival.archivable import types
from scheduler.handlers.archival.models import ArchivalPolicy
from scheduler.handlers.archival.select import cutoff

COUNT_UP_TO = 10_000  # rows; more are "10,000+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Rows past a policy."""

    rows: int  # COUNT_UP_TO + 1 stands for more
    before: datetime

    def told(self) -> str:
        """'1,204', '10,000+'."""
        return f"{COUNT_UP_TO:,}+" if self.rows > COUNT_UP_TO else f"{self.rows:,}"


def preview(policy: ArchivalPolicy, *, now: datetime) -> Preview | None:
    """Rows past the policy, whether it is enabled or not; None: its type is known no more.

    A default counts the rows of all tenants that have no policy of their own.
    """
    if (rows := types().get(policy.record_type)) is None:
        return None
    before = cutoff(now, keep_days=policy.keep_days, zone=settings.SERVER_TIME_ZONE)
    own = ArchivalPolicy.objects.filter(record_type=policy.record_type)
    count = rows.count(
        tenant_id=policy.tenant_id,
        before=before,
        at_most=COUNT_UP_TO + 1,
        but=own.exclude(tenant=None).values("tenant"),
    )
    return Preview(rows=count, before=before)
