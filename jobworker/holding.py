"""holding: keep the claims of this process, with every beat; notice those that are lost.

One UPDATE for all running jobs. A claim that somebody took, since this process counted
as stopped, stops its job: what it did is kept as a late result.
"""

import logging
from collections.abc import Callable, Collection

from audit import clock
from jobworker.attempt import Attempt
from jobworker.models import Job

logger = logging.getLogger(__name__)

LOST_PATIENCE = 90.0  # seconds


class Holding:
    """The beat's task."""

    def __init__(self, *, running: Callable[[], Collection[Attempt]]) -> None:
        """`running`: what this process holds."""
        self._running = running

    def __call__(self) -> None:
        """Renew all, stop what is lost."""
        held = {each.claimed.claim_id: each for each in self._running()}
        if not held:
            return
        mine = Job.objects.running().filter(claim_id__in=held)
        if mine.update(heartbeat_at=clock.DatabaseNow()) == len(held):
            return
        kept = set(mine.values_list("claim_id", flat=True))
        still = {each.claimed.claim_id for each in self._running()}
        for claim, attempt in held.items():
            if claim not in kept and claim in still:
                job = attempt.job
                logger.warning("claim lost job=%s type=%s", job.id, job.type)
                attempt.closed = True
                attempt.stop("lost", patience=LOST_PATIENCE)
