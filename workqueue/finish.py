"""Outcomes -> ledger, a batch at a time, fenced by claim_id.

One transaction deletes the items (or puts them back to pending) and writes their
Runs. What matches no row is looked for: a Run of this very finish means that the
reply to a COMMIT was lost; anything else makes the result a LateResult, never lost.
"""

import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID, uuid4

from django.db import DatabaseError, connection, transaction
from django.db.models import F, Value

from audit import clock, ledger, queries, transcript, wire
from audit.ledger import Ended, LateRecord, RunRecord
from audit.text import gate
from workqueue import sql
from workqueue.attempt import Finished
from workqueue.context import Outcome
from workqueue.exceptions import may_work_later
from workqueue.models import WorkItem

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Back to pending instead of away."""

    delay_s: float
    failures: int
    error: str


def finish(
    batch: Sequence[Finished],
    *,
    node_id: UUID,
    node: str,
    finish_id: UUID | None = None,
) -> int:
    """Close the batch; return how many items went back to pending.

    May be repeated with the same finish_id after a lost connection: what was already
    stored is recognised. Where values are refused it is halved down to the one bad result.
    """
    finish_id = finish_id or uuid4()
    close = partial(finish, node_id=node_id, node=node, finish_id=finish_id)
    # One that failed by its limit may have ended since. Both results match its claim.
    first = {f.attempt: f for f in reversed(batch)}
    if len(first) < len(batch):
        again = close([f for f in batch if first[f.attempt] is f])
        seconds = [f for f in batch if first[f.attempt] is not f]
        _keep_late(seconds, node_id=node_id, node=node)
        return again
    try:
        unmatched, again = _close(
            batch, node_id=node_id, node=node, finish_id=finish_id
        )
    except Exception as problem:  # a result may be anything that a handler made
        if may_work_later(problem):
            raise
        if len(batch) == 1:
            return _close_unstorable(
                batch[0], problem, node_id=node_id, node=node, finish_id=finish_id
            )
        half = len(batch) // 2
        # Under the same id, or a repetition would not know the half that was stored.
        return close(batch[:half]) + close(batch[half:])
    if unmatched:
        _settle_unmatched(unmatched, finish_id=finish_id, node_id=node_id, node=node)
    return again


def again(finished: Finished) -> Again | None:
    """Whether, and when, the item runs again: a retry, or the handler asked for it."""
    claimed, outcome = finished.attempt.claimed, finished.outcome
    if finished.word == "failed":
        if claimed.failures >= claimed.retry_attempts:
            return None
        pause = min(claimed.retry_cap_s, claimed.retry_base_s * 2**claimed.failures)
        jitter = random.uniform(0.8, 1.2)  # noqa: S311  not a secret: spreads retries
        return Again(
            delay_s=pause * jitter,
            failures=claimed.failures + 1,
            error=gate(finished.error, limit=2000),
        )
    if outcome.again_in is not None and finished.word != "cancelled":
        return Again(
            delay_s=max(0.0, outcome.again_in.total_seconds()), failures=0, error=""
        )
    return None


def _close(
    batch: Sequence[Finished], *, node_id: UUID, node: str, finish_id: UUID
) -> tuple[list[Finished], int]:
    """One transaction; returns what matched no row, and how many went back."""
    back = [(f, a) for f in batch if (a := again(f))]
    away = [f for f in batch if not again(f)] if back else batch
    delete = _delete if connection.vendor == "postgresql" else _delete_sqlite
    with transaction.atomic():
        closed = delete(away, node_id, node, finish_id) if away else set()
        kept = [f for f in away if f.attempt.claimed.id not in closed]
        if kept:  # the tick asked for one more run meanwhile, or the claim is lost
            back += [(f, Again(delay_s=0, failures=0, error="")) for f in kept]
        returned = _return(back)
        if again_stored := [f for f, _ in back if f.attempt.claimed.id in returned]:
            _record(again_stored, node_id, node, finish_id)
    lost = [f for f, _ in back if f.attempt.claimed.id not in returned]
    return lost, len(returned)


def _delete(batch: Sequence[Finished], _: UUID, __: str, finish_id: UUID) -> set[int]:
    """Delete and record by one statement; the ids that it found. The items name their node."""
    closed = ledger.record_closed(
        [_end_of(f) for f in batch],
        first=sql.FINISHING,
        close=sql.FINISH,
        params={"ids": [f.attempt.claimed.id for f in batch]},
        finish_id=finish_id,
    )
    _store_lines(f for f in batch if f.attempt.claimed.id in closed)
    return closed


def _delete_sqlite(
    batch: Sequence[Finished], node_id: UUID, node: str, finish_id: UUID
) -> set[int]:
    ids = [f.attempt.claimed.id for f in batch]
    claims = [f.attempt.claimed.claim_id for f in batch]
    rows = WorkItem.objects.filter(id__in=ids, claim_id__in=claims, rerun=False)
    found = set(rows.values_list("id", flat=True))
    WorkItem.objects.filter(id__in=found).delete()
    mine = [f for f in batch if f.attempt.claimed.id in found]
    _record(mine, node_id, node, finish_id)
    return found


def _return(back: Sequence[tuple[Finished, Again]]) -> set[int]:
    """Back to pending. A row that was not to be deleted and has no rerun is somebody else's."""
    if not back:
        return set()
    if connection.vendor == "postgresql":
        params = {
            "ids": [f.attempt.claimed.id for f, _ in back],
            "claims": [f.attempt.claimed.claim_id for f, _ in back],
            "delays": [a.delay_s for _, a in back],
            "failures": [a.failures for _, a in back],
            "errors": [a.error for _, a in back],
            "now": clock.fixed(),
        }
        return {row[0] for row in wire.fetch(sql.FINISH_AGAIN, params)}
    return {f.attempt.claimed.id for f, a in back if _return_sqlite(f, a)}


def _return_sqlite(finished: Finished, how: Again) -> bool:
    claimed = finished.attempt.claimed
    mine = WorkItem.objects.filter(id=claimed.id, claim_id=claimed.claim_id)
    back = {
        "not_before": clock.later(how.delay_s),
        "failures": how.failures,
        "last_error": how.error,
    }
    return mine.update(**RETURNED, recoveries=0, rerun=False, **back) == 1


# What an item that goes back to pending forgets of the attempt.
RETURNED = {
    "status": WorkItem.Status.PENDING,
    "claim_id": None,
    "node_id": None,
    "node": "",
    "claimed_at": None,
    "renewed_at": None,
    "started_at": None,
    "progress": Value(None, output_field=WorkItem._meta.get_field("progress")),
}


def hand_back(ids: Sequence[int], claims: Sequence[UUID]) -> int:
    """Return claims that never started: as if they had not been claimed."""
    mine = WorkItem.objects.filter(id__in=ids, claim_id__in=claims)
    return mine.update(
        **RETURNED, not_before=clock.DatabaseNow(), attempts=F("attempts") - 1
    )


def _record(
    batch: Sequence[Finished], node_id: UUID, node: str, finish_id: UUID
) -> None:
    _store_lines(batch)
    ledger.record([_run_of(f, node_id, node) for f in batch], finish_id=finish_id)


def _store_lines(batch: Iterable[Finished]) -> None:
    """The lines that do not fit into the runs."""
    lines = [line for f in batch for line in f.attempt.transcript.close().rest]
    if lines:
        transcript.store(lines)


def _end_of(f: Finished) -> Ended:
    outcome, closed = f.outcome, f.attempt.transcript.close()
    return Ended(
        f.attempt.claimed.claim_id,
        f.attempt.started_at,
        f.finished_at,
        f.word,
        outcome.seen,
        outcome.changed,
        outcome.skipped,
        outcome.failed,
        outcome.summary,
        f.error,
        outcome.details,
        closed.short,
        closed.line_count,
        closed.dropped,
    )


def _run_of(f: Finished, node_id: UUID, node: str) -> RunRecord:
    """The same with all that the claim returned: its item has gone, or forgotten the attempt."""
    claimed = f.attempt.claimed
    return RunRecord(
        **_end_of(f)._asdict(),
        item_id=claimed.id,
        tenant_id=claimed.tenant_id,
        tenant=claimed.tenant,
        handler=claimed.handler,
        dedup_key=claimed.dedup_key,
        tick_id=claimed.tick_id,
        trigger=claimed.trigger,
        slot=claimed.slot,
        enqueued_at=claimed.enqueued_at,
        claimed_at=claimed.claimed_at,
        node_id=node_id,
        node=node,
        attempt=claimed.attempts,
        recoveries=claimed.recoveries,
    )


def _settle_unmatched(
    batch: Sequence[Finished], *, finish_id: UUID, node_id: UUID, node: str
) -> None:
    """Tell a lost COMMIT reply from a lost claim; keep the results of the latter."""
    known = queries.finish_ids([f.attempt.claimed.claim_id for f in batch])
    lost = [f for f in batch if known.get(f.attempt.claimed.claim_id) != finish_id]
    _keep_late(lost, node_id=node_id, node=node)


def _keep_late(batch: Sequence[Finished], *, node_id: UUID, node: str) -> None:
    for f in batch:
        claimed, outcome = f.attempt.claimed, f.outcome
        closed = f.attempt.transcript.close()
        logger.warning(
            "late result claim=%s handler=%s tenant=%s outcome=%s",
            claimed.claim_id,
            claimed.handler,
            claimed.tenant,
            f.word,
        )
        ledger.record_late(
            LateRecord(
                claim_id=claimed.claim_id,
                node_id=node_id,
                node=node,
                tenant_id=claimed.tenant_id,
                tenant=claimed.tenant,
                handler=claimed.handler,
                started_at=f.attempt.started_at,
                finished_at=f.finished_at,
                outcome=f.word,
                seen=outcome.seen,
                changed=outcome.changed,
                skipped=outcome.skipped,
                failed=outcome.failed,
                summary=outcome.summary,
                error=f.error,
                transcript=closed.short
                or "\n".join(line.text for line in closed.rest[-200:]),
            )
        )


def _close_unstorable(
    finished: Finished,
    problem: Exception,
    *,
    node_id: UUID,
    node: str,
    finish_id: UUID,
) -> int:
    """The last one of a batch that the database refuses: failed, with the reason."""
    logger.error(
        "result could not be stored claim=%s: %s",
        finished.attempt.claimed.claim_id,
        problem,
    )
    error = f"its result could not be stored: {type(problem).__name__}: {problem}"
    finished.attempt.transcript.discard()
    plain = Outcome(failed=1)  # nothing of what was refused
    bare = Finished(finished.attempt, plain, "failed", error, finished.finished_at)
    try:
        unmatched, again_count = _close(
            [bare], node_id=node_id, node=node, finish_id=finish_id
        )
    except DatabaseError:
        logger.exception(
            "failure could not be stored claim=%s", finished.attempt.claimed.claim_id
        )
        raise
    if unmatched:
        _settle_unmatched(unmatched, finish_id=finish_id, node_id=node_id, node=node)
    return again_count
