"""recent: the newest runs of many handlers at once, in one statement."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from audit import sql
from audit.models import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """A finished run, as much of it as a list of handlers shows."""

    claim_id: UUID
    outcome: str
    tenant_id: int
    tenant: str  # slug at the time
    finished_at: datetime
    ran: timedelta | None  # null: it never began
    summary: str  # its beginning
    error: str  # its beginning


def by_handler(handlers: Sequence[str], *, per: int = 50) -> dict[str, list[Recent]]:
    """The newest `per` runs of each handler, newest first; handlers without one are missing."""
    postgresql = connection.vendor == "postgresql"
    rows = Run.objects.raw(
        sql.RECENT_POSTGRESQL if postgresql else sql.RECENT_SQLITE,
        {
            "handlers": list(handlers) if postgresql else json.dumps(list(handlers)),
            "per": per,
        },
    )
    found: dict[str, list[Recent]] = defaultdict(list)
    for row in rows:
        found[row.handler].append(
            Recent(
                claim_id=row.id,
                outcome=row.outcome,
                tenant_id=row.tenant_id,
                tenant=row.tenant,
                finished_at=row.finished_at,
                ran=None
                if row.started_at is None
                else max(row.finished_at - row.started_at, timedelta()),
                summary=getattr(row, "said", ""),
                error=getattr(row, "problem", ""),
            )
        )
    for newest in found.values():  # the order of rows across a join is nobody's promise
        newest.sort(key=lambda run: run.finished_at, reverse=True)
    return dict(found)
