"""process: one scheduler process around its loop: its node, its beat, its end.

`Ticker` is one and adds what a pass does. The beat's thread renews the lease, watches
the ticker and judges other processes; this file is the only one that starts threads.
"""

import logging
from typing import Any

from django.db import DatabaseError, InterfaceError

from jobworker.reconcile import reconcile
from scheduler import sql
from scheduler.election import Election
from scheduler.look import Look, look
from workqueue import connections, node, reclaim, registry, wakeup
from workqueue.beat import Beat
from workqueue.loop import Loop

logger = logging.getLogger(__name__)

# Beats between looks for abandoned jobs: job workers look with every beat, but the last
# of them may be the one that died.
JOBS = 6


class SchedulerProcess(Loop):
    """A standby, or the master."""

    name = "scheduler"

    def prepare(self) -> None:
        """Register, and start the threads."""
        connections.use_pool(kind="server")
        self.me = node.register(kind="server", report={})
        self.election = Election(me=self.me)
        self.live = look().live
        self._beats = 0
        tasks = (self.election.renew, self.election.watch, self.judge)
        self.beat = Beat(me=self.me, report=self.report, tasks=tasks)
        self.listener = wakeup.Listener(self.wake, channel=sql.CHANNEL)
        self.beat.start()
        self.listener.start()
        logger.info(
            "scheduler started node=%s handlers=%s settings_version=%s",
            self.me.id,
            len(registry.rows()),
            self.live.version,
        )

    def look(self) -> Look:
        """Look, and learn from it whether the term goes on."""
        seen = look()
        self.live = seen.live
        self.election.follow(seen.lease)
        return seen

    def judge(self) -> None:
        """Mark silent processes stopped, return or fail what they held. In the beat's thread.

        A standby does so with every second beat: it has 45 transactions a minute in all.
        """
        self._beats += 1
        if self.election.term is None and self._beats % 2:
            return
        may_judge = self.beat.may_judge()
        if may_judge and node.mark_silent():
            reclaim.reclaim(claim_timeout=self.live.policy.claim_timeout)
        if self._beats % JOBS == 0:
            reconcile(may_judge=may_judge)

    def report(self) -> dict[str, Any]:
        """Written with each beat."""
        return {
            "term": self.election.term,
            "settings_version": self.live.version,
            "handlers": list(registry.rows()),
            "not_set": registry.not_set(),
            "connections": connections.report(),
            "loop": "draining" if self.stopping.is_set() else "running",
        }

    def drain(self) -> None:
        """Give the lease back, so that a standby takes over at once; then end in order."""
        steps = (
            self._resign,
            self.beat.stop,
            self.listener.stop,
            self._end,
            connections.close_all,
        )
        for step in steps:
            try:
                step()
            except (DatabaseError, InterfaceError) as problem:
                text = " ".join(str(problem).split())[:300]
                logger.warning("ending without the database: %s", text)

    def _resign(self) -> None:
        self.election.resign(text="told to stop")

    def _end(self) -> None:
        node.end(self.me, text="stopped in order")
        logger.info("scheduler stopped node=%s", self.me.id)
