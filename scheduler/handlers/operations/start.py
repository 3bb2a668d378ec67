"""start: a draft that an operator confirmed -> an operation and its item; and its early end."""

from django.db import transaction

from audit import ledger
from scheduler.handlers.operations.matching import KEY
from scheduler.handlers.operations.models import BulkOperation
from workqueue.enqueue import enqueue


def start(operation: BulkOperation, *, origin: str) -> None:
    """Write it down and enqueue its item, or neither."""
    with transaction.atomic():
        operation.save(force_insert=True)
        enqueue(
            KEY,
            tenant=operation.tenant,
            dedup_key=str(operation.pk),
            trigger="operator",
        )
        ledger.change(
            who=operation.who,
            origin=origin,
            subject=f"operation:{operation.pk} {operation.verb} {operation.of}",
            verb="asked for",
            new={
                "filters": operation.query,
                "rows": operation.expected,
                "at most": operation.at_most,
            },
            why=operation.why,
            tenant_id=None if operation.tenants is None else operation.tenant_id,
        )


def stop(operation: BulkOperation, *, who: str, origin: str, why: str) -> bool:
    """Leave its remaining rows alone. False: it was over, or stopped already."""
    with transaction.atomic():
        stopped = operation.stop(who=who, why=why)
        if stopped:
            ledger.change(
                who=who,
                origin=origin,
                subject=f"operation:{operation.pk} {operation.verb} {operation.of}",
                verb="stopped",
                old={"state": operation.state},
                new={"state": "stopped"},
                why=why,
                tenant_id=None if operation.tenants is None else operation.tenant_id,
            )
    return stopped
