"""Lines and progress of runs longer than a second are stored while they run.

So their page follows live. A thread of its own: a slow finish must not delay it.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.db import (
    DatabaseError,
    InterfaceError,
    close_old_connections,
    connections,
    transaction,
)

from audit import clock, transcript
from workqueue.attempt import Attempt
from workqueue.models import WorkItem

logger = logging.getLogger(__name__)

LONG = 1.0  # seconds that a run must last to be followed
# Seconds between two stores. A page asks twice a second, too: a line is in it 1.2 s after
# it was written at the latest. With a store a second it was 1.6 s.
EVERY = 0.5
LEFT_OUT = "lines_left_out"  # in the progress of an item whose transcript is full


class Follower:
    """The thread that stores what running attempts have written so far."""

    def __init__(self, *, running: Callable[[], Iterable[Attempt]]) -> None:
        """`running`: what is running now."""
        self._running = running
        self._ended = threading.Event()
        self._unstored: list[transcript.LineRow] = []
        self._thread = threading.Thread(target=self._loop, name="follower", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop; what is not stored yet is stored with the finish of its attempt."""
        self._ended.set()
        self._thread.join(2.0)

    def _loop(self) -> None:
        try:
            while not self._ended.wait(EVERY):
                try:
                    self._store()
                except (DatabaseError, InterfaceError) as problem:
                    logger.warning(
                        "lines kept for later: %s", " ".join(str(problem).split())[:300]
                    )
                except Exception:
                    logger.exception("lines could not be stored")
                    self._unstored.clear()
                close_old_connections()
        finally:
            connections.close_all()

    def _store(self) -> None:
        followed = [a for a in self._running() if clock.steady() - a.taken_at > LONG]
        for attempt in followed:
            self._unstored += attempt.transcript.take()
        progressed = [a for a in followed if a.progress is not None or _grown(a)]
        if not self._unstored and not progressed:
            return
        with transaction.atomic():
            transcript.store(self._unstored)
            for attempt in progressed:
                value = _told(attempt)
                claimed = attempt.claimed
                WorkItem.objects.filter(
                    id=claimed.id, claim_id=claimed.claim_id
                ).update(progress=value)
        self._unstored = []


def _grown(attempt: Attempt) -> bool:
    """Whether lines were left out since it was last told."""
    told: int = attempt.told.get(LEFT_OUT, 0)
    return attempt.transcript.dropped > told


def _told(attempt: Attempt) -> dict[str, Any]:
    """What the item's page is told: the handler's progress, and how many lines it does not have."""
    value, attempt.progress = attempt.progress, None
    value = attempt.told if value is None else value
    if left_out := attempt.transcript.dropped:
        value = {**value, LEFT_OUT: left_out}
    attempt.told = value
    return value
