"""Abandoned claims -> pending, failed or held, as their row says.

Called by every worker at WORKER_RECLAIM_INTERVAL_MS and, by any live process, with
the beat that judges others. A claim is abandoned when its node is stopped or, to who
may judge, when it was not renewed for WORKER_CLAIM_TIMEOUT_SECONDS; each gets its Run
in the same transaction, so that a late finish finds it.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from audit import clock, ledger
from audit.text import gate
from workqueue import finish, wakeup
from workqueue.ended import run_of
from workqueue.models import Node, WorkItem

logger = logging.getLogger(__name__)

BATCH = 200  # items per transaction
MOST_RECOVERIES = 3  # then the item is poison and held


def reclaim(*, claim_timeout: timedelta | None) -> int:
    """Settle what was abandoned; return how many items that were.

    `claim_timeout`: None where the caller may not judge (Beat.may_judge): right after an
    outage nobody has renewed. What stopped processes held is settled all the same.
    """
    return _reclaim_all(_abandoned(claim_timeout))


def give_up(claims: Sequence[UUID], *, reason: str) -> int:
    """Abandon this process's own claims at the end of its drain. Not a recovery: nothing died."""
    own = WorkItem.objects.executing().filter(claim_id__in=claims)
    return _reclaim_all(own, reason=reason, recovery=0)


def _abandoned(claim_timeout: timedelta | None) -> QuerySet[WorkItem]:
    stopped = Node.objects.filter(id=OuterRef("node_id"), status=Node.Status.STOPPED)
    known = Node.objects.filter(id=OuterRef("node_id"))
    left = Q(Exists(stopped)) | Q(~Exists(known))
    if claim_timeout is not None:
        left |= Q(renewed_at__lt=clock.earlier(claim_timeout))
    return WorkItem.objects.executing().filter(left)


def _reclaim_all(
    abandoned: QuerySet[WorkItem], *, reason: str = "", recovery: int = 1
) -> int:
    total = 0
    while count := _reclaim_batch(abandoned, reason=reason, recovery=recovery):
        total += count
        if count < BATCH:
            break
    if total:
        wakeup.notify()
    return total


def _reclaim_batch(abandoned: QuerySet[WorkItem], *, reason: str, recovery: int) -> int:
    if not abandoned.exists():
        return 0  # looking takes no lock
    with transaction.atomic():
        rows = list(
            abandoned.select_for_update(skip_locked=True, of=("self",)).order_by("id")[
                :BATCH
            ]
        )
        beats = dict(
            Node.objects.filter(id__in={row.node_id for row in rows}).values_list(
                "id", "heartbeat_at"
            )
        )
        now = clock.now()
        records = []
        for row in rows:
            because = gate(reason or _because(row, beats))
            outcome, error = _settle(row, because=because, recovery=recovery)
            records.append(run_of(row, outcome=outcome, error=error, now=now))
        if records:
            ledger.record(records, finish_id=uuid4())
    for row in rows:
        logger.warning(
            "claim abandoned handler=%s tenant=%s claim=%s node=%s",
            row.handler,
            row.tenant_slug,
            row.claim_id,
            row.node,
        )
    return len(rows)


def _because(row: WorkItem, beats: Mapping[UUID, datetime]) -> str:
    beat = beats.get(row.node_id) if row.node_id else None
    last = (
        f"last heartbeat {beat:%Y-%m-%d %H:%M:%S} UTC"
        if beat
        else "its process is not known any more"
    )
    return f"abandoned by {row.node or 'an unknown process'}, {last}"


def _settle(row: WorkItem, *, because: str, recovery: int) -> tuple[str, str]:
    """Move the item on by its row's rule; return outcome and error of the attempt."""
    recoveries = row.recoveries + recovery
    item = WorkItem.objects.filter(id=row.id)
    if row.abandon == WorkItem.Abandon.FAIL:
        item.delete()
        return "failed", f"{because}; its row says fail: it is not run again"
    if row.abandon == WorkItem.Abandon.HOLD:
        text = f"{because}; its row says hold: release or drop it"
        item.update(**_held(text, recoveries))
        return "abandoned", text
    if recoveries >= MOST_RECOVERIES:
        text = f"its worker died {recoveries} times while it ran; held: release it to try again, or drop it ({because})"
        item.update(**_held(text, recoveries))
        return "failed", text
    text = f"{because}; returned to the queue"
    item.update(
        **finish.RETURNED,
        not_before=clock.DatabaseNow(),
        recoveries=recoveries,
        last_error=text,
    )
    return "abandoned", text


def _held(text: str, recoveries: int) -> dict[str, object]:
    forgotten = {**finish.RETURNED, "status": WorkItem.Status.HELD}
    return {
        **forgotten,
        "held_reason": text,
        "last_error": text,
        "recoveries": recoveries,
    }
