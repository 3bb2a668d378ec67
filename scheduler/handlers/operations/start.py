"""start: a draft that an operator confirmed -> an operation and its item; its early end; its going on."""

from typing import Any

from django.db import transaction

from audit import clock, ledger
from scheduler.handlers.operations.models import KEY, BulkOperation
from workqueue.enqueue import enqueue
from workqueue.models import WorkItem


def start(operation: BulkOperation, *, origin: str) -> None:
    """Write it down and enqueue its item, or neither."""
    with transaction.atomic():
        operation.save(force_insert=True)
        _enqueue(operation)
        _change(
            operation,
            who=operation.who,
            origin=origin,
            verb="asked for",
            new={
                "filters": operation.query,
                "rows": operation.expected,
                "at most": operation.at_most,
            },
            why=operation.why,
        )


def stop(operation: BulkOperation, *, who: str, origin: str, why: str) -> bool:
    """Leave its remaining rows alone. False: it was over, or stopped already.

    Where no item of it lives, nobody would come to end it: it is over at once.
    """
    with transaction.atomic():
        stopped = operation.stop(who=who, why=why)
        if stopped:
            lives = item_of(operation) is not None
            if not lives:
                operation.end(now=clock.now())
            _change(
                operation,
                who=who,
                origin=origin,
                verb="stopped",
                old={"state": operation.state(lives=lives)},
                new={"state": "stopped"},
                why=why,
            )
    return stopped


def go_on(operation: BulkOperation, *, who: str, origin: str, why: str) -> bool:
    """Enqueue its item again. False: that one lives, or it is over or was stopped."""
    going = BulkOperation.objects.unfinished().filter(pk=operation.pk, stopped_by="")
    with transaction.atomic():
        # The row is locked against a stop that would find no item.
        enqueued = going.select_for_update().exists() and _enqueue(operation)
        if enqueued:
            _change(
                operation,
                who=who,
                origin=origin,
                verb="continued",
                old={"state": "interrupted"},
                new={"state": "pending"},
                why=why,
            )
    return enqueued


def item_of(operation: BulkOperation) -> WorkItem | None:
    """What goes on with it; None: nothing does."""
    items = WorkItem.objects.filter(handler=KEY, tenant=operation.tenant)
    return items.filter(dedup_key=str(operation.pk)).first()


def _enqueue(operation: BulkOperation) -> bool:
    return enqueue(
        KEY,
        tenant=operation.tenant,
        dedup_key=str(operation.pk),
        trigger="operator",
    )


def _change(
    operation: BulkOperation, *, new: Any, old: Any = None, **values: str
) -> None:
    ledger.change(
        subject=f"operation:{operation.pk} {operation.verb} {operation.of}",
        tenant_id=None if operation.tenants is None else operation.tenant_id,
        old=old,
        new=new,
        **values,
    )
