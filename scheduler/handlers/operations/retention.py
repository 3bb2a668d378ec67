"""retention: operations and their results, until KEPT after they were asked for."""

from datetime import datetime, timedelta

from scheduler.handlers.operations.models import BulkOperation, BulkResult

KEPT = timedelta(days=90)


def delete_old(now: datetime, *, limit: int) -> int:
    """Delete old results, then operations once none is left; how many rows. Caller's transaction.

    One whose item lives stays: somebody is at it.
    """
    old = BulkOperation.objects.forsaken().filter(asked_at__lt=now - KEPT)
    ids = list(old.order_by("asked_at", "id").values_list("pk", flat=True)[:limit])
    results = BulkResult.objects.filter(operation_id__in=ids)
    taken = list(results.values_list("pk", flat=True)[:limit])
    gone = BulkResult.objects.filter(pk__in=taken).delete()[0]
    bare = ids[: limit - gone]
    return gone + BulkOperation.objects.filter(pk__in=bare).delete()[0]
