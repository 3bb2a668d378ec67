"""Lines and progress of runs longer than a second are stored while they run.

So their page follows live. A thread of its own: a slow finish must not delay it. Only
where the claim still holds: behind a run that somebody else has closed nothing is
written. What is not stored here is stored with the finish.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import close_old_connections, connections, transaction

from audit import clock, transcript
from audit.text import gate_json
from workqueue.attempt import Attempt
from workqueue.connections import end_if_frozen
from workqueue.exceptions import may_work_later
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
        self._thread = threading.Thread(target=self._loop, name="follower", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Store all there is and stop; later lines are stored with the finish of their attempt."""
        self._ended.set()
        self._thread.join(2.0)

    def _loop(self) -> None:
        try:
            last = False
            while not last:
                last = self._ended.wait(EVERY)
                self._follow(last=last)
                close_old_connections()
        finally:
            connections.close_all()

    def _follow(self, *, last: bool = False) -> None:
        """Store what there is; what one attempt wrote is no matter of the others."""
        some = [a for a in self._running() if clock.steady() - a.taken_at > LONG]
        try:
            _store(some, last=last)
        except Exception as problem:
            if may_work_later(problem):
                _later(problem)
                return
            for attempt in some:
                _store_alone(attempt, last=last)


def _store_alone(attempt: Attempt, *, last: bool) -> None:
    try:
        _store([attempt], last=last)
    except Exception as problem:
        if may_work_later(problem):
            _later(problem)
            return
        claimed = attempt.claimed
        logger.exception(
            "lines left out claim=%s handler=%s", claimed.claim_id, claimed.handler
        )
        attempt.transcript.leave_out()
        attempt.shown = attempt.progress


def _later(problem: Exception) -> None:
    logger.warning("lines kept for later: %s", " ".join(str(problem).split())[:300])


def _store(attempts: Sequence[Attempt], *, last: bool) -> None:
    lines = {attempt: attempt.transcript.take(last=last) for attempt in attempts}
    news = {a: new for a in attempts if (new := _news(a))}
    some = [a for a in attempts if lines[a] or a in news]
    if not some:
        return
    with transaction.atomic():
        held = _held(some)
        mine = [a for a in some if a.claimed.claim_id in held]
        transcript.store([line for a in mine for line in lines[a]])
        for attempt in mine:
            if attempt in news:
                rows = WorkItem.objects.filter(id=attempt.claimed.id)
                rows.update(progress=_told(*news[attempt]))
    for attempt in mine:
        attempt.transcript.stored(len(lines[attempt]))
        if attempt in news:
            attempt.shown, attempt.shown_left_out = news[attempt]


def _held(attempts: Sequence[Attempt]) -> set[UUID]:
    """The claims that hold, until the commit. What is finished or taken right now is left out."""
    end_if_frozen()
    rows = WorkItem.objects.filter(
        id__in=[a.claimed.id for a in attempts],
        claim_id__in=[a.claimed.claim_id for a in attempts],
    )
    locked = rows.select_for_update(skip_locked=True, no_key=True)
    return {claim_id for (claim_id,) in locked.values_list("claim_id") if claim_id}


def _news(attempt: Attempt) -> tuple[dict[str, Any] | None, int] | None:
    """(progress, lines left out) where its item's page is not told of them yet."""
    now = (attempt.progress, attempt.transcript.dropped)
    # By identity: each call of the handler makes a value of its own.
    same = now[0] is attempt.shown and now[1] <= attempt.shown_left_out
    return None if same else now


def _told(progress: dict[str, Any] | None, left_out: int) -> dict[str, Any]:
    """What the item's page is told: the handler's progress, and how many lines it does not have."""
    value: dict[str, Any] = gate_json(progress or {})
    return {**value, LEFT_OUT: left_out} if left_out else value
