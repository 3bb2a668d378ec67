"""drain: the end of a job worker: wait, interrupt, abandon in order.

The first seconds belong to the jobs. Eight seconds before the end external programs are
interrupted, so that they can put away what they hold; a second after it they are
killed. What still has not ended is marked as given up, so that the next worker fails it
as soon as it starts, and never as alive.
"""

import logging
import time
from collections.abc import Callable, Collection
from uuid import UUID

from audit import clock
from jobworker.attempt import Attempt

logger = logging.getLogger(__name__)

INTERRUPT = 8.0  # seconds before the end
KILL = 1.0  # seconds after it
LOOK = 0.05  # seconds


def drain(
    running: Callable[[], Collection[Attempt]],
    *,
    seconds: float,
    give_up: Callable[[list[UUID]], object],
) -> int:
    """Let what runs end within so many seconds; return how many were given up.

    `give_up` marks the claims of the rest in the database.
    """
    end = clock.steady() + seconds
    for each in running():
        each.context.drain()
    _wait(running, end - INTERRUPT)
    for each in running():
        logger.warning(
            "job is interrupted, its worker stops job=%s type=%s",
            each.job.id,
            each.job.type,
        )
        each.stop("drain", patience=INTERRUPT + KILL, kill_at=end + KILL)
    _wait(running, end)
    left = [each.claimed.claim_id for each in running()]
    if left:
        give_up(left)
        _wait(running, end + KILL + 0.3)
    return len(left)


def _wait(running: Callable[[], Collection[Attempt]], until: float) -> None:
    while running() and clock.steady() < until:
        time.sleep(LOOK)
