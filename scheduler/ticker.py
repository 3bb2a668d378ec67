"""ticker: the loop. Look; stand for election; as master, tick what is due.

Read downwards: a pass is `poll`. Started by `runscheduler`, in as many processes as
there are servers; one of them is master, the others look every two seconds. What must
stay true: nothing is decided here that two processes could decide at once (the
database does that, in `election` and `tick`), one row's problem stops no other, and
every pass that gets anywhere says so to the watch in the beat's thread.
"""

import logging
from contextlib import suppress

from audit import clock, text
from scheduler.bootstrap import bootstrap
from scheduler.catch_up import due_now
from scheduler.daily import daily
from scheduler.exceptions import NotMaster, connection_lost
from scheduler.look import Lease, Look
from scheduler.models import Schedule
from scheduler.plan import Plan, plans, seconds_to_next
from scheduler.process import SchedulerProcess
from scheduler.tick import Cause, tick

logger = logging.getLogger(__name__)

LOOK = 2.0  # seconds between looks
LOOK_DEAF = 1.0  # seconds, where nobody can wake this process
CLOSEST = 0.05  # seconds between looks, however often it is woken
AGAIN = 60.0  # seconds until what failed is tried again
RECONNECTED = 5.0  # seconds until a row is, in whose tick the connection was lost
DAY = 86_400.0  # seconds


class Ticker(SchedulerProcess):
    """The loop of a scheduler process."""

    def __init__(self) -> None:
        """Nothing is known of any term. All moments are of clock.steady()."""
        super().__init__()
        self._looked_at = 0.0
        self._term = 0  # the term of which the next three speak
        self._bootstrap_at = self._daily_at = 0.0
        self._held_back: dict[str, float] = {}  # key -> when it is tried again

    def poll(self) -> float:
        """One pass. Returns the seconds until the next."""
        self.stopping.wait(max(0.0, self._looked_at + CLOSEST - clock.steady()))
        self._looked_at = clock.steady()
        seen = self.look()
        if seen.lease.free and self._may_stand() and self.election.take():
            seen = self.look()
        found: list[Plan] = []
        if self.election.may_act():
            with suppress(NotMaster):  # logged where it was found
                found = plans(seen, election=self.election)
                self._act(found, seen)
        self.election.passed()
        return seconds_to_next(
            found, now=clock.now(), at_most=self._patience(seen.lease)
        )

    def _may_stand(self) -> bool:
        """Who ends, or may be taken for dead, is no candidate."""
        return self.beat.fresh() and not self.stopping.is_set()

    def _act(self, found: list[Plan], seen: Look) -> None:
        """What a master does in a pass: bootstrap once, tick what is due, some things daily."""
        if self.election.term != self._term:
            self._term = self.election.term or 0
            self._bootstrap_at = self._daily_at = 0.0
            self._held_back.clear()
        if clock.steady() >= self._bootstrap_at:
            done = bootstrap(found, seen=seen, election=self.election)
            self._bootstrap_at = float("inf") if done else clock.steady() + AGAIN
        for plan, cause in due_now(found, seen=seen):
            if self.stopping.is_set():
                return
            self._tick(plan, cause, seen)
            self.election.passed()
        if clock.steady() >= self._daily_at:
            self._daily_at = clock.steady() + DAY
            daily(self.election)

    def _tick(self, plan: Plan, cause: Cause, seen: Look) -> None:
        """Tick one row. What goes wrong with it is its own, unless the database is away."""
        key = plan.row.key
        if self._held_back.get(key, 0.0) > clock.steady():
            return
        try:
            tick(plan.row, cause, election=self.election, live=seen.live)
        except NotMaster:
            raise
        except Exception as problem:
            if connection_lost(problem):
                # Perhaps by this row, which made the server end an idle transaction:
                # at the next pass the others come first.
                self._held_back[key] = clock.steady() + RECONNECTED
                raise
            logger.exception("tick failed handler=%s again_in=%.0fs", key, AGAIN)
            self._held_back[key] = clock.steady() + AGAIN
            self._flag(
                plan, f"its last tick failed: {type(problem).__name__}: {problem}"
            )

    def _flag(self, plan: Plan, problem: str) -> None:
        """Say on the row's page what is wrong with it, until it ticks again."""
        with self.election.acting():
            schedule = Schedule.objects.filter(key=plan.row.key)
            schedule.update(problem=text.gate(problem, limit=2000))

    def _patience(self, lease: Lease) -> float:
        """Seconds to the next look: a standby is there when the lease it saw runs out."""
        at_most = LOOK if self.listener.healthy() else LOOK_DEAF
        if self.election.term is not None or lease.expires_at is None or lease.free:
            return at_most
        return min(at_most, (lease.expires_at - clock.now()).total_seconds() + CLOSEST)
