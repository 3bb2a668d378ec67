"""run: a claimed job -> its outcome, in a thread of its own.

Whatever the job raises becomes its outcome: the worker lives. The thread also stores
the end, again and again while the database is away: until then the job counts as
running, its heartbeat goes on, and its slot is taken.
"""

import errno
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from django.db import (
    DatabaseError,
    InterfaceError,
    close_old_connections,
    connections,
    transaction,
)

from audit.capture import captured_by
from audit.text import gate_json
from jobworker import installed, registry
from jobworker import params as parameters
from jobworker.attempt import Attempt
from jobworker.exceptions import InvalidParams, JobFailed, Stopped
from jobworker.finish import finish
from jobworker.models import Job
from workqueue.context import Outcome, text_of
from workqueue.exceptions import may_work_later
from workqueue.run import door_of_thread, end_in_a_child, tidy

logger = logging.getLogger(__name__)

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
LONGEST_WAIT = 5.0  # seconds between attempts to store an end or a reference


class End(NamedTuple):
    """How a job ended."""

    outcome: Outcome
    word: str  # the ledger's: succeeded | partial | failed | cancelled
    code: str  # one word for programs
    error: str


def run(attempt: Attempt, *, ended: Callable[[Attempt], None]) -> None:
    """Run the job and store its end. The body of its thread; never raises."""
    try:
        _store(attempt, _run(attempt))
    except BaseException:  # nothing may leave a job behind that looks alive
        logger.exception("job thread failed job=%s", attempt.job.id)
    finally:
        ended(attempt)
        connections.close_all()


def end_without_its_thread(attempt: Attempt) -> threading.Thread:
    """Store the end of a job whose thread does not end, with where it stands; return who does.

    Whatever the thread does later does not count: its next query raises ClaimLost.
    """
    attempt.closed = True
    frame = (
        sys._current_frames().get(attempt.thread.ident or 0) if attempt.thread else None
    )
    stack = "".join(traceback.format_stack(frame)) if frame else "it has just ended\n"
    text = f"{attempt.context.stopped_words()}; its thread did not stop"
    attempt.transcript.write(logging.ERROR, f"{text} and stands here:\n{stack}")
    end = _stopped(attempt, text)
    storing = threading.Thread(
        target=_store_and_close, args=(attempt, end), name="end", daemon=True
    )
    storing.start()
    return storing


def _store_and_close(attempt: Attempt, end: End) -> None:
    """In a thread of its own: the database may be away, and the loop must go on."""
    try:
        _store(attempt, end)
    finally:
        connections.close_all()


def save(job_id: UUID, claim_id: UUID, column: str, value: dict[str, Any]) -> None:
    """Commit one column of a job at once.

    Tried again while the database is away: what was begun outside must not be forgotten.
    """
    mine = Job.objects.running().filter(id=job_id, claim_id=claim_id)
    _insist(lambda: mine.update(**{column: gate_json(value)}), what=column)


def _run(attempt: Attempt) -> End:
    door, process = door_of_thread(), os.getpid()
    door.attempt = attempt
    with captured_by(attempt.transcript.write, attempt.transcript.known):
        try:
            outcome = _call(attempt)
            end = End(outcome, outcome.word, "", outcome.error)
        except Stopped as stopped:
            end = _stopped(attempt, str(stopped))
        except InvalidParams as refused:
            error = f"this release refuses its parameters: {refused}"
            end = End(Outcome(failed=1), "failed", "invalid_params", error)
            logger.error("%s", end.error)
        except JobFailed as failed:
            end = End(Outcome(failed=1), "failed", failed.code, text_of(failed))
            logger.error("%s", end.error)
        except BaseException as problem:  # sys.exit in a job ends the job, no more
            error = _disk_words(problem)
            logger.error("%s", error or traceback.format_exc())
            error = error or f"{type(problem).__name__}: {text_of(problem)}"
            end = End(Outcome(failed=1), "failed", type(problem).__name__[:40], error)
        end_in_a_child(of=process)
        door.attempt = None
        tidy(door.connections)
    return end


def _disk_words(problem: BaseException) -> str:
    """Of a disk that takes no more, whoever writes; where in the code it was is no matter."""
    if not isinstance(problem, OSError) or problem.errno not in DISK:
        return ""
    place = f": {problem.filename}" if problem.filename else ""
    return f"{os.strerror(problem.errno)}{place}. Make room below JOB_ROOT, then submit it again."


def _call(attempt: Attempt) -> Outcome:
    job, context = attempt.job, attempt.context
    row, module = registry.row(job.type), registry.module(job.type)
    for program in installed.missing(row):
        text = installed.sentence(program, where=job.node, tier=row.tier)
        raise JobFailed(text, code="program_missing")
    # What was valid in the release that submitted it is looked at again in this one.
    params = parameters.read(module.Params, job.params)
    if job.adopts_id is None:
        outcome = module.run(context, params)
    else:
        outcome = module.follow(context, params, job.external_ref or {})
    if isinstance(outcome, Outcome):
        return outcome
    raise TypeError(
        f"the job returned {type(outcome).__name__}; an Outcome was expected"
    )


def _stopped(attempt: Attempt, text: str) -> End:
    """It was told to stop, and did: what that means depends on who told it."""
    reason, job = attempt.context.reason, attempt.job
    plain = Outcome(failed=1)
    if reason == "cancel":
        return End(Outcome(), "cancelled", "cancelled", text)
    if reason == "limit":
        text = f"time limit of {job.time_limit_s:,} s reached: {text}"
        return End(plain, "failed", "time_limit", text)
    if reason == "drain":
        told = f"its worker {job.node} was stopped before it could finish: {text}; it is not started again"
        return End(plain, "failed", "drained", told)
    return End(plain, "failed", reason or "stopped", text)


def _store(attempt: Attempt, end: End) -> None:
    with attempt.lock:  # the keeper stores lines of it no more
        _insist(lambda: finish(attempt, *end), what="end")


def _insist(act: Callable[[], object], *, what: str) -> None:
    """Do it, however long the database is away. Raises what is not about the database being away."""
    failures = 0
    while True:
        try:
            with transaction.atomic():
                act()
            break
        except (DatabaseError, InterfaceError) as problem:
            if not may_work_later(problem):
                raise
            failures += 1
            if failures == 1:
                text = " ".join(str(problem).split())[:300]
                logger.warning("%s is stored later: %s", what, text)
            close_old_connections()
            time.sleep(min(LONGEST_WAIT, 0.1 * 2**failures))
    if failures:
        logger.info("%s stored after=%s", what, failures)
