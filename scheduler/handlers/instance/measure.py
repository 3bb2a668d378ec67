"""measure: the figures of a report, read from the database.

Numbers, versions and random ids only: no tenant, no person, no host.
"""

import sqlite3
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Min

from audit import queries
from audit.clock import DatabaseNow
from scheduler.handlers.instance.identity import instance_id
from scheduler.models import MasterLease
from workqueue.models import Node, WorkItem

DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The report. These keys and no others leave the installation."""

    instance_id: str
    version: str
    started_at: str | None  # of the oldest process that is alive
    leader: str | None  # random id of the master's process; null: no master
    replicas_alive: int  # processes that are alive
    queue_depth: int  # items that wait
    oldest_pending_s: int  # since the oldest of them could have begun; 0: none waits
    failed_24h: int  # attempts that failed or were abandoned; 10,001 stands for more
    db: str  # "postgresql 18.4"

    def told(self) -> dict[str, Any]:
        """As it is sent."""
        return asdict(self)


def measure(*, now: datetime) -> Figures:
    """Read them."""
    lease = MasterLease.objects.filter(expires_at__gt=DatabaseNow()).first()
    started = Node.objects.alive().aggregate(first=Min("started_at"))["first"]
    waiting = WorkItem.objects.pending().filter(not_before__lte=now)
    oldest = waiting.aggregate(first=Min("not_before"))["first"]
    return Figures(
        instance_id=str(instance_id()),
        version=settings.VERSION,
        started_at=started.isoformat() if started else None,
        leader=str(lease.holder) if lease and lease.holder else None,
        replicas_alive=Node.objects.alive().count(),
        queue_depth=waiting.count(),
        oldest_pending_s=max(0, int((now - oldest).total_seconds())) if oldest else 0,
        failed_24h=queries.failed_since(now - DAY),
        db=_database(),
    )


def _database() -> str:
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        number = connection.connection.info.server_version  # 180004
        return f"postgresql {number // 10_000}.{number % 10_000}"
    return f"sqlite {sqlite3.sqlite_version}"
