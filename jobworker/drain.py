"""drain: the end of a job worker: wait, interrupt, abandon in order.

The first seconds belong to the jobs. Eight seconds before the end external programs are
interrupted, so that they can put away what they hold; a second after it they are
killed. What still has not ended is given up: the next worker fails it as soon as it
starts, and it never looks alive. All is over within two seconds of the end, whatever
the database does.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections

from audit import clock
from jobworker.attempt import Attempt

logger = logging.getLogger(__name__)

INTERRUPT = 8.0  # seconds before the end
KILL = 1.0  # seconds after it
ENDED = 1.3  # seconds after it; what was killed has ended by then
LAST = 1.8  # seconds after it; then nobody waits for the database any more
LOOK = 1.0  # seconds between looks for cancels and time limits
TICK = 0.05  # seconds
STEP = 0.5  # seconds that a step may keep the drain from the jobs
LEAVE = 5.0  # seconds for the last one, as far as there are so many


def drain(
    running: Callable[[], Collection[Attempt]],
    *,
    end: float,
    look: Callable[[], object],
) -> list[UUID]:
    """Let what runs end by then (clock.steady()); return the claims of what did not.

    `look` ends what is cancelled or over its time limit meanwhile.
    """
    for each in running():
        each.context.drain()
    _wait(running, end - INTERRUPT, look)
    for each in running():
        logger.warning(
            "job is interrupted, its worker stops job=%s type=%s",
            each.job.id,
            each.job.type,
        )
        each.stop("drain", patience=INTERRUPT + KILL, kill_at=end + KILL)
    _wait(running, end, look)
    _wait(running, end + ENDED, lambda: None)
    return [each.claimed.claim_id for each in running()]


class Steps:
    """What a drain does in the database, a step after the other, each in a thread of its own.

    A database that is away, or does not answer, must hold up neither the jobs nor the
    end: what is not done in time others do for us.
    """

    def __init__(self, *, end: float) -> None:
        """`end`: nobody waits for a step any longer (clock.steady())."""
        self._end = end
        self._thread: threading.Thread | None = None
        self._failing = False

    def do(self, act: Callable[[], object], *, within: float = STEP) -> None:
        """Do it and wait so many seconds for it; not at all where the last one takes that long."""
        until = min(clock.steady() + within, self._end)
        if self._over(until):
            self._thread = threading.Thread(
                target=self._try, args=(act,), name="drain", daemon=True
            )
            self._thread.start()
        if not self._over(until):
            self._failed("it does not answer")

    def _over(self, until: float) -> bool:
        if self._thread is None:
            return True
        self._thread.join(max(0.0, until - clock.steady()))
        return not self._thread.is_alive()

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
            self._failing = False
        except (DatabaseError, InterfaceError) as problem:
            self._failed(" ".join(str(problem).split())[:300])
        finally:
            connections.close_all()

    def _failed(self, why: str) -> None:
        if not self._failing:
            logger.warning("drain goes on without the database: %s", why)
        self._failing = True


def _wait(
    running: Callable[[], Collection[Attempt]],
    until: float,
    look: Callable[[], object],
) -> None:
    due = clock.steady()
    while running() and clock.steady() < until:
        if clock.steady() >= due:
            look()
            due = clock.steady() + LOOK
        time.sleep(TICK)
