"""claim: due rows of a channel -> this run, a batch at a time.

A claim ends by itself after LEASE, so a process that dies leaves nothing behind; the
row that is being sent is held for longer. Every later write of the attempt matches the
claim id.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F

from audit import clock
from audit.clock import DatabaseNow
from scheduler.handlers.notifications import sql
from scheduler.handlers.notifications.models import (
    Channel,
    Notification,
    NotificationQuerySet,
)


def channels_with_work(*, tenant_id: int) -> list[Channel]:
    """The tenant's usable channels that have rows due."""
    usable = Channel.objects.usable().with_work().filter(tenant_id=tenant_id)
    return list(usable.select_related("tenant").order_by("id"))


def take(channel: Channel, *, claim_id: UUID, limit: int) -> list[Notification]:
    """Claim up to `limit` due rows; none where the channel was paused or disabled meanwhile."""
    postgresql = connection.vendor == "postgresql"
    statement = sql.CLAIM_ON_POSTGRESQL if postgresql else sql.CLAIM_ON_SQLITE
    with connection.cursor() as cursor:
        cursor.execute(statement, _params(channel, claim_id=claim_id, limit=limit))
        ids = [row[0] for row in cursor.fetchall()]
    mine = Notification.objects.filter(pk__in=ids, claim_id=claim_id)
    return list(mine.select_related("tenant").order_by("id")) if ids else []


def hold(row: Notification, *, claim_id: UUID) -> bool:
    """Keep the row while it is being sent. False: it is not ours any more."""
    until = DatabaseNow() + sql.HELD
    mine = _mine([row], claim_id=claim_id)
    return mine.update(claimed_until=until, next_attempt_at=until) == 1


def hand_back(
    rows: Iterable[Notification], *, claim_id: UUID, until: datetime | None
) -> None:
    """Undo the claim; the attempt does not count. `until`: not before then; None: now."""
    _mine(rows, claim_id=claim_id).update(
        state=Notification.State.PENDING,
        attempts=F("attempts") - 1,
        claimed_until=None,
        next_attempt_at=until or DatabaseNow(),
    )


def _mine(rows: Iterable[Notification], *, claim_id: UUID) -> NotificationQuerySet:
    return Notification.objects.filter(
        pk__in=[row.pk for row in rows],
        claim_id=claim_id,
        state=Notification.State.SENDING,
    )


def _params(channel: Channel, *, claim_id: UUID, limit: int) -> dict[str, Any]:
    params = {"channel": channel.pk, "claim": claim_id, "limit": limit}
    if connection.vendor == "postgresql":
        return {**params, "now": clock.fixed(), "lease": sql.LEASE}
    # One machine, one clock: its own is the database's.
    now = clock.fixed() or clock.now()
    adapt = connection.ops.adapt_datetimefield_value
    return {
        **params,
        "claim": claim_id.hex,
        "now": adapt(now),
        "until": adapt(now + sql.LEASE),
    }
