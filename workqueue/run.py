"""Claimed item -> outcome.

Runs the handler in the calling thread, outside any transaction, its log records
going to the attempt's transcript. Whatever it raises, SystemExit included, becomes a
failed outcome with the type named: the worker lives.
"""

import logging
import os
import threading
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from audit import clock
from audit.capture import captured_by
from workqueue import registry, sql
from workqueue.attempt import Attempt, Finished
from workqueue.context import Context, Outcome, text_of
from workqueue.exceptions import ClaimLost

logger = logging.getLogger(__name__)


def run(attempt: Attempt, *, stopping: Callable[[], bool]) -> Finished:
    """Run the attempt's handler to its end."""
    attempt.started_at = clock.now()
    error, process = "", os.getpid()
    door = door_of_thread()
    tidy(door.connections)
    door.attempt = attempt
    with captured_by(attempt.transcript.write, attempt.transcript.known):
        try:
            handler = registry.load(attempt.claimed.handler)
            outcome = _checked(handler(_context(attempt, stopping)))
            word, error = outcome.word, outcome.error
        except (
            BaseException
        ) as problem:  # sys.exit in a handler ends the run, not the worker
            outcome, word = Outcome(failed=1), "failed"
            error = f"{type(problem).__name__}: {text_of(problem)}"
            logger.error("%s", traceback.format_exc())
        end_in_a_child(of=process)
        door.attempt = None
        tidy(door.connections)
    return Finished(attempt, outcome, word, error, clock.now())


def _context(attempt: Attempt, stopping: Callable[[], bool]) -> Context:
    claimed = attempt.claimed
    now = attempt.started_at or clock.now()

    def progress(value: dict[str, Any]) -> None:
        attempt.progress = {**value}

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
    if not isinstance(outcome, Outcome):
        raise TypeError(
            f"the handler returned {type(outcome).__name__}; an Outcome was expected"
        )
    if not isinstance(outcome.again_in, timedelta | None):
        raise TypeError(
            f"again_in is {type(outcome.again_in).__name__}; a timedelta was expected"
        )
    return outcome


def end_in_a_child(*, of: int) -> None:
    """End a process that was forked in what ran: it would be a second worker.

    `of`: the pid of the process that ran it.
    """
    if os.getpid() != of:
        os._exit(0)


class Named(Protocol):
    """What log lines say of what runs."""

    @property
    def handler(self) -> str: ...  # timetable key or job type

    @property
    def tenant(self) -> str: ...  # slug

    @property
    def id(self) -> int | UUID: ...  # of the item or the job

    @property
    def claim_id(self) -> UUID: ...


class Held(Protocol):
    """A claim that a thread works on."""

    closed: bool

    @property
    def claimed(self) -> Named: ...


class Door:
    """Refuses the queries of a thread once its attempt is closed. Sees neither COMMIT nor COPY."""

    def __init__(self) -> None:
        """Stand before every connection of this thread; they stay the thread's own."""
        self.attempt: Held | None = None
        self.connections = connections.all()
        for connection in self.connections:
            connection.execute_wrappers.append(self)

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        """Pass the query on, or not."""
        if self.attempt is not None and self.attempt.closed:
            raise ClaimLost
        return execute(*args)


_here = threading.local()


def door_of_thread() -> Door:
    """The door of this thread, made with its first run."""
    door: Door | None = getattr(_here, "door", None)
    if door is None:
        door = _here.door = Door()
    return door


def claimed_here() -> Named | None:
    """What the calling thread runs now, for its log lines; None: nothing."""
    door: Door | None = getattr(_here, "door", None)
    return door.attempt.claimed if door and door.attempt else None


def tidy(mine: Sequence[BaseDatabaseWrapper]) -> None:
    """Give connections back; what a handler left open is rolled back, never handed on."""
    for connection in mine:
        if connection.vendor == "postgresql" and connection.connection is not None:
            _renew_session(connection)
        if connection.in_atomic_block or connection.needs_rollback:
            logger.warning("the handler left a transaction open; it was rolled back")
            connection.in_atomic_block = False
            connection.savepoint_ids = []
            connection.needs_rollback = False
            connection.close()
        elif connection.connection is not None:
            connection.close_if_unusable_or_obsolete()


def _renew_session(connection: Any) -> None:
    """What a handler has set is the session's, and whoever gets the connection next has it too."""
    session: psycopg.Connection[Any] = connection.connection
    try:
        # A transaction that Django knows nothing of: closing is sure to end it.
        if session.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            session.close()
            return
        session.execute(sql.RENEW_SESSION)
        # As the pool has it done to a new one; ensure_timezone() would close the pool.
        connection._configure_connection(session)
    except psycopg.Error:
        session.close()
