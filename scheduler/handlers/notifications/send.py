"""send: a channel's batch, one message after the other, each result written at once.

Called by `deliver` outside any transaction. A write that fails ends the run: going on
would send what could not be recorded, and all of that would go out again.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Never

from audit import clock, words
from scheduler.handlers.notifications import back_off, claim, disable, render, sql
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import MAX_ATTEMPTS, Channel, Notification
from workqueue.context import Context, text_of
from workqueue.exceptions import ClaimLost

logger = logging.getLogger(__name__)

LOSSES = 2  # connections lost in a row; one more, and the rest waits
SHORTEST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(hours=1)
END_BEFORE = sql.HELD + timedelta(minutes=1)  # the deadline of the run, for what began


type Policy = Callable[[int], back_off.Next | None]


class _Reopen(Exception):
    """The connection was lost; the next row may have a new one."""


@dataclass(slots=True, kw_only=True)
class _Batch:
    """A channel's claimed rows on their way out; `waiting[0]` is the one in hand."""

    ctx: Context
    channel: Channel
    endpoint: border.Endpoint
    waiting: deque[Notification]
    sent: int = 0
    losses: int = 0  # of connections, since a message went through


def send(ctx: Context, *, channel: Channel, batch: Sequence[Notification]) -> bool:
    """Send the batch. False: the rest was left for later, and going on now makes no sense."""
    job = _Batch(
        ctx=ctx,
        channel=channel,
        endpoint=channel.endpoint(),
        waiting=deque(batch),
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
    if _stopped(job):  # connecting may take its time as well
        return False
    try:
        with border.opened(job.endpoint) as deliver:
            while job.waiting:
                if _stopped(job):
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
    row = job.waiting[0]
    if not claim.hold(row, claim_id=job.ctx.claim_id):
        _gone(job)
        return
    try:
        provider_id = deliver(render.message(row, endpoint=job.endpoint))
    except (ClaimLost, border.RateLimited, border.Broken):
        raise
    except border.Unreachable as problem:
        # Where others go through it is this one's fault, and must not cost for ever.
        _not_taken(job, problem, back_off.counted if job.sent else back_off.outage)
        _lost(job, problem)
    except border.PerhapsTaken as problem:
        _not_taken(job, problem, back_off.once_more)
        _lost(job, problem)
    except border.Deferred as problem:
        _not_taken(job, problem, back_off.counted)
    except border.Refused as problem:
        _not_taken(job, problem, back_off.never)
    except Exception as problem:  # ours or the module's fault; this row only
        _unexpected(job, problem)
    else:
        _written(job.waiting.popleft(), ok=row.sent(provider_id))
        job.sent += 1
        job.losses = 0
        job.ctx.tally.changed += 1


def _lost(job: _Batch, problem: Exception) -> Never:
    """The connection is gone: a new one for the next row, or none for now."""
    job.losses += 1
    if job.losses <= LOSSES:
        raise _Reopen from problem
    raise border.Unreachable(str(problem)) from problem


def _gone(job: _Batch) -> None:
    """The row in hand is not ours any more."""
    row = job.waiting.popleft()
    logger.warning("notification %s was claimed by another run meanwhile", row.pk)
    job.ctx.tally.skipped += 1


def _stopped(job: _Batch) -> bool:
    """Leave the rest to another run where no further message may be started now."""
    if job.ctx.stopping():
        _hand_back(job, "the process drains or the claim is lost")
        return True
    if clock.now() > job.ctx.deadline - END_BEFORE:
        _hand_back(job, "the time limit of the run is near")
        return True
    return False


def _not_taken(job: _Batch, problem: Exception, policy: Policy) -> None:
    """Count and settle the row in hand."""
    row, error = job.waiting.popleft(), str(problem)
    if again := _settle_failure(row, error, policy):
        wait = words.duration(again.delay)
        then = f"attempt {again.attempts} of {MAX_ATTEMPTS}, next in {wait}"
    elif policy is back_off.never:
        then = "not retried"
    else:
        then = f"failed after {row.attempts} attempts"
    line = f"notification {row.pk} to {words.shown(row.recipient, limit=80)}: {error}, {then}"
    _count(job, line, rows=1)


def _unexpected(job: _Batch, problem: Exception) -> None:
    """Settle the row in hand as after any failure; the traceback goes to the transcript."""
    row = job.waiting.popleft()
    error = f"{type(problem).__name__}: {text_of(problem)}"
    _settle_failure(row, error, back_off.counted)
    job.ctx.tally.seen -= 1  # record() counts it, and the batch has been counted
    with job.ctx.record("notification", row.pk):
        raise problem


def _leave(job: _Batch, error: str) -> None:
    """The channel is of no use now: everything left has its back-off, in one line."""
    rows = list(job.waiting)
    job.waiting.clear()
    for row in rows:
        _settle_failure(row, error, back_off.outage)
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
    row: Notification, error: str, policy: Policy
) -> back_off.Next | None:
    """Back to waiting for what the policy says; None: it is failed now."""
    if again := policy(row.attempts):
        _written(row, ok=row.deferred(error, **again._asdict()))
    else:
        _written(row, ok=row.failed(error))
    return again


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
