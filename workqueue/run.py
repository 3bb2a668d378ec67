"""Claimed item -> outcome.

Runs the handler in the calling thread, outside any transaction, its log records
going to the attempt's transcript. Whatever it raises, SystemExit included, becomes a
failed outcome with the type named: the worker lives.
"""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import close_old_connections, connections

from audit import clock
from audit.capture import captured_by
from workqueue import registry
from workqueue.attempt import Attempt, Finished
from workqueue.context import Context, Outcome, text_of
from workqueue.exceptions import ClaimLost

logger = logging.getLogger(__name__)


def run(attempt: Attempt, *, stopping: Callable[[], bool]) -> Finished:
    """Run the attempt's handler to its end."""
    now = clock.now()
    attempt.started_at = now
    error = ""
    with _door(attempt), captured_by(attempt.transcript.write):
        close_old_connections()
        try:
            outcome = _checked(
                registry.load(attempt.claimed.handler)(_context(attempt, stopping))
            )
            word, error = outcome.word, outcome.error
        except (
            BaseException
        ) as problem:  # sys.exit in a handler ends the run, not the worker
            outcome, word = Outcome(failed=1), "failed"
            error = f"{type(problem).__name__}: {text_of(problem)}"
            logger.error("%s", traceback.format_exc())
        _leave_no_transaction()
        close_old_connections()
    return Finished(attempt, outcome, word, error, clock.now())


def _context(attempt: Attempt, stopping: Callable[[], bool]) -> Context:
    claimed = attempt.claimed
    now = attempt.started_at or clock.now()

    def progress(value: dict[str, Any]) -> None:
        attempt.progress = value

    return Context(
        key=claimed.handler,
        tenant_id=claimed.tenant_id,
        tenant=claimed.tenant,
        dedup_key=claimed.dedup_key,
        now=now,
        slot=claimed.slot,
        trigger=claimed.trigger,
        attempt=claimed.attempts,
        claim_id=claimed.claim_id,
        deadline=now + timedelta(seconds=claimed.time_limit_s),
        stopping=lambda: attempt.closed or stopping(),
        progress=progress,
    )


def _checked(outcome: object) -> Outcome:
    if isinstance(outcome, Outcome):
        return outcome
    raise TypeError(
        f"the handler returned {type(outcome).__name__}; an Outcome was expected"
    )


@contextmanager
def _door(attempt: Attempt) -> Iterator[None]:
    """Refuse this thread's queries once the attempt is closed. Sees neither COMMIT nor COPY."""

    def guard(execute: Callable[..., Any], *args: Any) -> Any:
        if attempt.closed:
            raise ClaimLost
        return execute(*args)

    mine = connections.all()
    for connection in mine:
        connection.execute_wrappers.append(guard)
    try:
        yield
    finally:
        for connection in mine:
            if guard in connection.execute_wrappers:
                connection.execute_wrappers.remove(guard)


def _leave_no_transaction() -> None:
    """A handler that died inside atomic() by other means must not hand its transaction on."""
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block or connection.needs_rollback:
            logger.warning("the handler left a transaction open; it was rolled back")
            connection.in_atomic_block = False
            connection.savepoint_ids = []
            connection.needs_rollback = False
            connection.close()
