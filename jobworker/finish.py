"""finish: how a job ended -> its row and its Run, in one transaction, fenced by claim_id.

A result that matches no row any more is kept as a late one, never lost; a job whose
result the database refuses fails with the reason.
"""

import logging
from datetime import datetime
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q

from audit import clock, ledger, queries, transcript
from audit.ledger import LateRecord, RunRecord
from audit.text import gate, gate_json
from audit.transcript import Closed
from jobworker import registry
from jobworker.attempt import Attempt
from jobworker.models import Job
from workqueue.context import Outcome
from workqueue.exceptions import may_work_later

logger = logging.getLogger(__name__)

# The ledger's word -> the job's. A job that did a part of its work has not succeeded.
STATUS = {
    "succeeded": Job.Status.SUCCEEDED,
    "partial": Job.Status.FAILED,
    "failed": Job.Status.FAILED,
    "abandoned": Job.Status.FAILED,
    "cancelled": Job.Status.CANCELLED,
}


def finish(
    attempt: Attempt, outcome: Outcome, word: str, code: str, error: str
) -> None:
    """Store the end. May be repeated after a lost connection: what is stored is recognised."""
    try:
        with transaction.atomic():
            stored = _close(attempt, outcome, word, code, error)
    except Exception as problem:  # a result may be anything that a job made
        if may_work_later(problem):
            raise
        logger.error("result could not be stored job=%s: %s", attempt.job.id, problem)
        attempt.transcript.discard()
        error = f"its result could not be stored: {type(problem).__name__}: {problem}"
        with transaction.atomic():
            stored = _close(attempt, Outcome(failed=1), "failed", "unstorable", error)
    if not stored:
        _keep_late(attempt, outcome, word, error)


def end(
    job: Job,
    *,
    word: str,
    code: str,
    error: str,
    summary: str = "",
    where: Q | None = None,
) -> bool:
    """End a job from outside, in the caller's transaction: cancelled while it waited, or abandoned.

    False: somebody else moved it meanwhile, or `where` holds no more. The row that the
    caller saw is the fence.
    """
    same = Job.objects.filter(id=job.id, status=job.status, claim_id=job.claim_id)
    now = clock.now()
    ended = same.filter(where or Q()).update(
        status=STATUS[word],
        finished_at=clock.DatabaseNow(),
        error_code=code,
        error=gate(error),
        summary=gate(summary),
    )
    if not ended:
        return False
    if job.claim_id:
        _break_off(job, error)
    lines = queries.line_count(job.claim_id) if job.claim_id else 0
    record = _record(
        job, outcome=Outcome(summary=summary), word=word, error=error, now=now
    )
    ledger.record(
        [record._replace(line_count=lines, dropped_lines=job.dropped_lines)],
        finish_id=uuid4(),
    )
    _publish(job, STATUS[word], summary=summary, error=error)
    return True


def _close(
    attempt: Attempt, outcome: Outcome, word: str, code: str, error: str
) -> bool:
    """One transaction; False: the claim is not ours any more."""
    job, sign = attempt.job, attempt.context.sign
    result = {**attempt.context.result, **(outcome.details or {})}
    closed = attempt.transcript.close()
    done = STATUS[word] == Job.Status.SUCCEEDED
    mine = Job.objects.running().filter(id=job.id, claim_id=job.claim_id)
    count = mine.update(
        status=STATUS[word],
        finished_at=clock.DatabaseNow(),
        progress=100 if done else sign.progress,
        phase=gate(sign.phase, limit=200),
        phases=gate_json(sign.phases),
        summary=gate(outcome.summary),
        error_code=code[:40],
        error=gate(error),
        result=gate_json(result) or None,
        line_count=closed.line_count,
        dropped_lines=closed.dropped,
    )
    if not count:
        return False
    if not done:
        _break_off(job, error)
    transcript.store(closed.rest)
    ledger.record(
        [_run_of(attempt, outcome, word, error, closed)], finish_id=_finish_id(attempt)
    )
    _publish(job, STATUS[word], summary=outcome.summary, error=error)
    return True


def _break_off(job: Job, why: str) -> None:
    """Nothing that it was in the middle of may look alive. Whatever comes of that, it has ended.

    Ahead of the other writes of the transaction: where the connection is lost in here,
    the next of them says so.
    """
    try:
        with transaction.atomic():
            registry.broken_off(job.type, job.id, why)
    except Exception:
        logger.exception("what a job left is not put right job=%s", job.id)


def _publish(job: Job, status: str, *, summary: str, error: str) -> None:
    """Tell the world, in the transaction of the end."""
    ledger.event(
        type=f"job.{status}",
        severity=3 if status == Job.Status.FAILED else 1,
        tenant_id=job.tenant_id,
        tenant=job.tenant_slug,
        subject=f"job:{job.id}",
        data={
            "type": job.type,
            "about": job.subject,
            "summary": summary,
            "error": error,
            "submitted_by": job.created_by,
        },
    )


def _finish_id(attempt: Attempt) -> UUID:
    """The same for every attempt to store this end."""
    return attempt.claimed.claim_id


def _run_of(
    attempt: Attempt, outcome: Outcome, word: str, error: str, closed: Closed
) -> RunRecord:
    record = _record(
        attempt.job, outcome=outcome, word=word, error=error, now=clock.now()
    )
    return record._replace(
        transcript=closed.short,
        line_count=closed.line_count,
        dropped_lines=closed.dropped,
    )


def _record(
    job: Job, *, outcome: Outcome, word: str, error: str, now: datetime
) -> RunRecord:
    """The attempt; one that never began gets an id of its own."""
    return RunRecord(
        id=job.claim_id or clock.uuid7(now),
        kind="job",
        tenant_id=job.tenant_id,
        tenant=job.tenant_slug,
        handler=job.type,
        dedup_key=str(job.id),
        trigger="call",
        enqueued_at=job.created_at,
        claimed_at=job.claimed_at,
        started_at=job.started_at,
        finished_at=now,
        node_id=job.node_id,
        node=job.node,
        attempt=1 if job.claim_id else 0,
        outcome=word,
        seen=outcome.seen,
        changed=outcome.changed,
        skipped=outcome.skipped,
        failed=outcome.failed,
        summary=outcome.summary,
        error=error,
        details=outcome.details,
    )


def _keep_late(attempt: Attempt, outcome: Outcome, word: str, error: str) -> None:
    """The claim was taken meanwhile, or the reply to our own COMMIT was lost."""
    job, claim_id = attempt.job, attempt.claimed.claim_id
    if queries.finish_ids([claim_id]).get(claim_id) == _finish_id(attempt):
        return
    logger.warning("late result job=%s type=%s outcome=%s", job.id, job.type, word)
    closed = attempt.transcript.close()
    ledger.record_late(
        LateRecord(
            claim_id=claim_id,
            node_id=job.node_id,
            node=job.node,
            tenant_id=job.tenant_id,
            tenant=job.tenant_slug,
            handler=job.type,
            started_at=job.started_at,
            finished_at=clock.now(),
            outcome=word,
            seen=outcome.seen,
            changed=outcome.changed,
            skipped=outcome.skipped,
            failed=outcome.failed,
            summary=outcome.summary,
            error=error,
            transcript=closed.short
            or "\n".join(line.text for line in closed.rest[-200:]),
        )
    )
