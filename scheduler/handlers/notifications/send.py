"""send: a channel's batch, one message after the other, each result written at once.

Called by `deliver` outside any transaction. A write that fails ends the run: going on
would send what could not be recorded, and all of that would go out again.
"""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from audit import clock, words
from scheduler.handlers.notifications import back_off, claim, disable, render, sql
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import MAX_ATTEMPTS, Channel, Notification
from workqueue.context import Context, text_of
from workqueue.exceptions import ClaimLost

logger = logging.getLogger(__name__)

RENEW_AFTER = sql.LEASE / 2
LOSSES = 2  # connections lost in one batch before the rest waits
SHORTEST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(hours=1)
END_BEFORE = timedelta(seconds=60)  # the deadline of the run: what one message may take


class _Reopen(Exception):
    """The connection was lost; the next row may have a new one."""


@dataclass(slots=True, kw_only=True)
class _Batch:
    """A channel's claimed rows on their way out; `waiting[0]` is the one in hand."""

    ctx: Context
    channel: Channel
    endpoint: border.Endpoint
    waiting: deque[Notification]
    claimed_at: float  # steady seconds
    sent: int = 0
    losses: int = 0  # of connections


def send(ctx: Context, *, channel: Channel, batch: Sequence[Notification]) -> bool:
    """Send the batch. False: the rest was left for later, and going on now makes no sense."""
    job = _Batch(
        ctx=ctx,
        channel=channel,
        endpoint=channel.endpoint(),
        waiting=deque(batch),
        claimed_at=clock.steady(),
    )
    ctx.tally.seen += len(batch)
    going = True
    while job.waiting and going:
        going = _through_one_connection(job)
    if job.sent:
        channel.worked()
    if batch:
        logger.info("%s: sent %s of %s", job.endpoint.label, job.sent, len(batch))
    return going


def _through_one_connection(job: _Batch) -> bool:
    """Send until no row or no connection is left. False: stop."""
    try:
        with border.opened(job.endpoint) as deliver:
            while job.waiting:
                if reason := _must_stop(job):
                    _hand_back(job, reason)
                    return False
                _one(job, deliver)
        return True
    except _Reopen:
        return True
    except border.RateLimited as problem:
        _pause(job, problem.pause)
    except border.Broken as problem:
        disable.after_failure(
            job.channel, error=str(problem), claim_id=job.ctx.claim_id
        )
        _leave(job, str(problem))
    except border.Unreachable as problem:
        job.channel.unreachable(str(problem))
        _leave(job, str(problem))
    return False


def _one(job: _Batch, deliver: border.Deliver) -> None:
    """Send the row in hand and write what became of it, whatever that is."""
    row = _keep_claim(job)
    if row is None:
        return
    try:
        provider_id = deliver(render.message(row, endpoint=job.endpoint))
    except (ClaimLost, border.RateLimited, border.Broken):
        raise
    except border.Unreachable as problem:
        _not_taken(job, str(problem), again=True)
        job.losses += 1
        # The row that the connection was lost over has its back-off, like any other.
        if job.losses <= LOSSES:
            raise _Reopen from problem
        raise
    except (border.Refused, border.Deferred) as problem:
        _not_taken(job, str(problem), again=isinstance(problem, border.Deferred))
    except Exception as problem:  # ours or the module's fault; this row only
        _unexpected(job, problem)
    else:
        _written(job.waiting.popleft(), ok=row.sent(provider_id))
        job.sent += 1
        job.ctx.tally.changed += 1


def _keep_claim(job: _Batch) -> Notification | None:
    """The row in hand, its claim renewed where it has got old. None: all were taken from us."""
    if clock.steady() - job.claimed_at > RENEW_AFTER.total_seconds():
        job.claimed_at = clock.steady()
        mine = claim.renew(job.waiting, claim_id=job.ctx.claim_id)
        gone = [row for row in job.waiting if row.pk not in mine]
        if gone:
            logger.warning(
                "%s: %s claimed by another run meanwhile", job.endpoint.label, len(gone)
            )
            job.ctx.tally.skipped += len(gone)
            job.waiting = deque(row for row in job.waiting if row.pk in mine)
    return job.waiting[0] if job.waiting else None


def _must_stop(job: _Batch) -> str:
    """Why no further message may be started now; "" if one may."""
    if job.ctx.stopping():
        return "the process drains or the claim is lost"
    if clock.now() > job.ctx.deadline - END_BEFORE:
        return "the time limit of the run is near"
    return ""


def _not_taken(job: _Batch, error: str, *, again: bool) -> None:
    """Count and settle the row in hand."""
    row = job.waiting.popleft()
    delay = _settle_failure(row, error, again=again)
    if delay is not None:
        then = (
            f"attempt {row.attempts} of {MAX_ATTEMPTS}, next in {words.duration(delay)}"
        )
    else:
        then = "not retried" if not again else f"failed after {row.attempts} attempts"
    line = f"notification {row.pk} to {words.shown(row.recipient, limit=80)}: {error}, {then}"
    _count(job, line, rows=1)


def _unexpected(job: _Batch, problem: Exception) -> None:
    """Settle the row in hand as after any failure; the traceback goes to the transcript."""
    row = job.waiting.popleft()
    _settle_failure(row, f"{type(problem).__name__}: {text_of(problem)}")
    job.ctx.tally.seen -= 1  # record() counts it, and the batch has been counted
    with job.ctx.record("notification", row.pk):
        raise problem


def _leave(job: _Batch, error: str) -> None:
    """The channel is of no use now: everything left has its back-off, in one line."""
    rows = list(job.waiting)
    job.waiting.clear()
    for row in rows:
        _settle_failure(row, error)
    _count(job, f"{job.endpoint.label}: {error}", rows=len(rows))


def _pause(job: _Batch, asked: timedelta) -> None:
    """Do as the other side asks. No attempt is counted, here nor for the rest."""
    span = min(max(asked, SHORTEST_PAUSE), LONGEST_PAUSE)
    job.channel.pause(span)
    family = job.endpoint.kind.partition("_")[0]
    logger.info(
        '%s "%s": rate limited, paused %s',
        family,
        job.endpoint.name,
        f"{span.total_seconds():.0f} s",
    )
    job.ctx.tally.skipped += len(job.waiting)
    claim.hand_back(
        job.waiting, claim_id=job.ctx.claim_id, until=job.channel.paused_until
    )
    job.waiting.clear()


def _hand_back(job: _Batch, reason: str) -> None:
    """Leave the rest to another run, as if it had never been claimed."""
    logger.info(
        "%s: %s left for later: %s", job.endpoint.label, len(job.waiting), reason
    )
    job.ctx.tally.skipped += len(job.waiting)
    claim.hand_back(job.waiting, claim_id=job.ctx.claim_id, until=None)
    job.waiting.clear()


def _settle_failure(
    row: Notification, error: str, *, again: bool = True
) -> timedelta | None:
    """Back to waiting, and after how long; None: it is failed now."""
    if not again or row.attempts >= MAX_ATTEMPTS:
        _written(row, ok=row.failed(error))
        return None
    delay = back_off.delay(row.attempts)
    _written(row, ok=row.deferred(error, delay=delay))
    return delay


def _count(job: _Batch, line: str, *, rows: int) -> None:
    logger.error("%s", line)
    job.ctx.tally.failed += rows
    job.ctx.tally.error = job.ctx.tally.error or line


def _written(row: Notification, *, ok: bool) -> None:
    if not ok:
        logger.warning(
            "notification %s was claimed by another run meanwhile; it may arrive twice",
            row.pk,
        )
