"""ended: the Run of a live item that was ended from outside: cancelled, dropped, abandoned."""

from datetime import datetime

from audit import clock
from audit.ledger import RunRecord
from workqueue.models import WorkItem


def run_of(
    item: WorkItem,
    *,
    outcome: str,
    now: datetime,
    summary: str = "",
    error: str = "",
) -> RunRecord:
    """The attempt that was under way; one that never began gets an id of its own."""
    return RunRecord(
        id=item.claim_id or clock.uuid7(now),
        item_id=item.pk,
        tenant_id=item.tenant_id,
        tenant=item.tenant_slug,
        handler=item.handler,
        dedup_key=item.dedup_key,
        tick_id=item.tick_id,
        trigger=item.trigger,
        slot=item.slot,
        enqueued_at=item.enqueued_at,
        claimed_at=item.claimed_at,
        started_at=item.started_at,
        finished_at=now,
        node_id=item.node_id,
        node=item.node,
        attempt=item.attempts,
        recoveries=item.recoveries,
        outcome=outcome,
        summary=summary,
        error=error,
    )
