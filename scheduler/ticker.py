"""ticker: the loop. Look; stand for election; as master, tick what is due.

Read downwards: a pass is `poll`. Started by `runscheduler`, in as many processes as
there are servers; one of them is master, the others look every two seconds. What must
stay true: nothing is decided here that two processes could decide at once (the
database does that, in `election` and `tick`), one row's problem stops no other, and
every pass that gets anywhere says so to the watch in the beat's thread.
"""

import logging
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, InterfaceError, connection

from audit import clock, text
from scheduler import sql
from scheduler.bootstrap import bootstrap
from scheduler.catch_up import due_now
from scheduler.daily import daily
from scheduler.election import Election
from scheduler.exceptions import NotMaster
from scheduler.look import Lease, Look, look
from scheduler.models import Schedule
from scheduler.plan import Plan, plans, seconds_to_next
from scheduler.tick import tick
from workqueue import connections, node, reclaim, registry, wakeup
from workqueue.beat import Beat
from workqueue.loop import Loop

logger = logging.getLogger(__name__)

LOOK = 2.0  # seconds between looks
LOOK_DEAF = 1.0  # seconds, where nobody can wake this process
CLOSEST = 0.05  # seconds between looks, however often it is woken
AGAIN = 60.0  # seconds until what failed is tried again
DAY = 86_400.0  # seconds


class Ticker(Loop):
    """One scheduler process: a standby, or the master."""

    name = "scheduler"

    def prepare(self) -> None:
        """Register, and start the threads."""
        connections.use_pool(kind="server")
        self.me = node.register(kind="server", report={})
        self.election = Election(me=self.me)
        self._beats = 0
        self._looked_at = 0.0  # clock.steady()
        self._live = look().live
        self._term = 0  # the term that the next four speak of
        self._bootstrap_at = self._daily_at = 0.0  # clock.steady()
        self._held_back: dict[
            str, float
        ] = {}  # key -> clock.steady() of its next attempt
        tasks = (self.election.renew, self.election.watch, self._judge)
        self.beat = Beat(me=self.me, report=self.report, tasks=tasks)
        self.listener = wakeup.Listener(self.wake, channel=sql.CHANNEL)
        self.beat.start()
        self.listener.start()
        logger.info(
            "scheduler started node=%s handlers=%s", self.me.id, len(registry.rows())
        )

    def poll(self) -> float:
        """One pass. Returns the seconds until the next."""
        self.stopping.wait(max(0.0, self._looked_at + CLOSEST - clock.steady()))
        seen = self._look()
        if (
            seen.lease.free
            and self.beat.fresh()
            and not self.stopping.is_set()
            and self.election.take()
        ):
            seen = self._look()
        found: list[Plan] = []
        if self.election.may_act():
            with suppress(NotMaster):  # logged where it was found
                found = plans(seen, election=self.election)
                self._act(found, seen)
        self.election.passed()
        return seconds_to_next(
            found, now=clock.now(), at_most=self._patience(seen.lease)
        )

    def _patience(self, lease: Lease) -> float:
        """Seconds to the next look: a standby is there when the lease it saw runs out."""
        at_most = LOOK if self.listener.healthy() else LOOK_DEAF
        if self.election.term is not None or lease.expires_at is None or lease.free:
            return at_most
        return min(at_most, (lease.expires_at - clock.now()).total_seconds() + CLOSEST)

    def _look(self) -> Look:
        seen = look()
        self._looked_at = clock.steady()
        self._live = seen.live
        self.election.follow(seen.lease)
        return seen

    def _act(self, found: list[Plan], seen: Look) -> None:
        """What a master does in a pass: bootstrap once, tick what is due, prune daily."""
        if self.election.term != self._term:
            self._term = self.election.term or 0
            self._bootstrap_at = self._daily_at = 0.0
            self._held_back.clear()
        if clock.steady() >= self._bootstrap_at:
            done = bootstrap(found, seen=seen, election=self.election)
            self._bootstrap_at = float("inf") if done else clock.steady() + AGAIN
        for plan, cause in due_now(found, seen=seen):
            if self._held_back.get(plan.row.key, 0.0) > clock.steady():
                continue
            try:
                tick(plan.row, cause, election=self.election, live=seen.live)
            except NotMaster:
                raise
            except Exception as problem:
                self._hold_back(plan, problem)
            self.election.passed()
        if clock.steady() >= self._daily_at:
            self._daily_at = clock.steady() + DAY
            daily(self.election)

    def _hold_back(self, plan: Plan, problem: Exception) -> None:
        """One row that fails: say so on its page, and try again in a minute."""
        if (
            isinstance(problem, DatabaseError | InterfaceError)
            and not connection.is_usable()
        ):
            raise problem
        logger.error(
            "tick failed handler=%s again_in=%.0fs",
            plan.row.key,
            AGAIN,
            exc_info=problem,
        )
        self._held_back[plan.row.key] = clock.steady() + AGAIN
        said = text.gate(
            f"its last tick failed: {type(problem).__name__}: {problem}", limit=2000
        )
        with self.election.acting():
            Schedule.objects.filter(key=plan.row.key).update(problem=said)

    def _judge(self) -> None:
        """Mark silent processes stopped, and return what they held. In the beat's thread.

        A standby does so with every second beat: it has 45 transactions a minute in all.
        """
        self._beats += 1
        if self.election.term is None and self._beats % 2:
            return
        if self.beat.may_judge() and node.mark_silent():
            reclaim.reclaim(claim_timeout=self._live.policy.claim_timeout)

    def report(self) -> dict[str, Any]:
        """Written with each beat."""
        return {
            "term": self.election.term,
            "settings_version": self._live.version,
            "handlers": list(registry.rows()),
            "loop": "draining" if self.stopping.is_set() else "running",
        }

    def drain(self) -> None:
        """Give the lease back, so that a standby takes over at once."""
        for act in (
            self._resign,
            self.beat.stop,
            self.listener.stop,
            self._end,
            connections.close_all,
        ):
            try:
                act()
            except (DatabaseError, InterfaceError) as problem:
                logger.warning(
                    "ending without the database: %s",
                    " ".join(str(problem).split())[:300],
                )

    def _resign(self) -> None:
        self.election.resign(text="told to stop")

    def _end(self) -> None:
        node.end(self.me, text="stopped in order")
        logger.info("scheduler stopped node=%s", self.me.id)
