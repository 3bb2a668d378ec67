"""The worker: claims items, runs them in slots, reclaims what others abandoned.

Threads: this loop claims; the slots run; the finisher stores; the follower stores
lines of long runs; the beat renews. Called by runworker. What must stay true: nothing
starts on a beat that is too old, and no settings value can stop the loop.
"""

import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections

from audit import clock
from audit.transcript import Transcript
from workqueue import (
    connections,
    finish,
    live,
    node,
    reclaim,
    registry,
    slots,
    tenancy,
    wakeup,
)
from workqueue.attempt import Attempt, Finished
from workqueue.beat import Beat
from workqueue.claim import (
    Claimed,
    Demand,
    Marks,
    claim,
    claim_suspect,
    suspect_due_since,
)
from workqueue.demand import PREFETCH, REFILL, demand_of
from workqueue.finisher import Finisher
from workqueue.follow import Follower
from workqueue.loop import Loop
from workqueue.renew import Renewing
from workqueue.report import report_of

logger = logging.getLogger(__name__)

# Slots may fall free as fast as items are claimed: then settings and time limits are
# looked at so often.
CLAIMING = 0.5  # seconds
UNBEGUN = 2.0  # seconds after which what has not begun goes back
LOOK = 5.0  # seconds between looks at settings and pauses
SUSPECTS = 10.0  # seconds between looks for suspects
OVERDUE = 60.0  # seconds after which a suspect stops everything else
# A thread that comes back from the database waits this long for one that computes;
# at Python's 5 ms a batch of a hundred would take five times as long.
SWITCH = 0.002  # seconds
# New objects between two collections of garbage: at Python's 2,000 a busy worker spends
# a seventh of its time looking through attempts that are all still needed.
COLLECT_AFTER = 20_000
EXIT_STUCK = 75  # more stuck threads than slots: the supervisor starts a fresh process


class Worker(Loop):
    """One worker process."""

    name = "worker"

    def prepare(self) -> None:
        """Register, and start the threads."""
        _tune()
        self._live = live.refresh()
        self._marks = Marks()
        self._more: set[str] = set()  # handlers that may have more than was claimed
        self._alone: Attempt | None = None  # the suspect that was claimed last
        self._next_claim = self._next_look = self._next_reclaim = (
            self._next_suspects
        ) = 0.0
        self._waiting_suspect_since: datetime | None = None
        connections.use_pool(
            kind="worker", wanted=self._live.policy.concurrency + connections.RESERVED
        )
        self.me = node.register(kind="worker", report={})
        self.slots = slots.Slots(
            done=self._finished, ready=self._fresh, stopping=self.stopping.is_set
        )
        self.finisher = Finisher(
            node_id=self.me.id,
            node=self.me.name,
            idle=lambda: not self.slots.in_hand(),
            returned=self._hurry,
        )
        self.follower = Follower(running=lambda: list(self.slots.running.copy()))
        renewing = Renewing(
            node_id=self.me.id, slots=self.slots, finisher=self.finisher
        )
        self.beat = Beat(me=self.me, report=self.report, tasks=(renewing, self._judge))
        self.listener = wakeup.Listener(self._hurry)
        self._apply()
        for part in (self.beat, self.finisher, self.follower, self.listener):
            part.start()
        logger.info(
            "worker started node=%s slots=%s handlers=%s settings_version=%s",
            self.me.id,
            self.slots.offered,
            len(registry.rows()),
            self._live.version,
        )

    def poll(self) -> float:
        """One pass: settings, time limits, reclaim, claim."""
        now = clock.steady()
        if now >= self._next_look:
            self._look(now)
        self._watch()
        if now >= self._next_reclaim:
            self._next_reclaim = (
                now + self._live.policy.reclaim_interval.total_seconds()
            )
            self._reclaim()
            tenancy.cancel_orphans()
        if self._may_claim() and (self._more or now >= self._next_claim):
            self._next_claim = now + self._live.policy.poll_interval.total_seconds()
            self._claim()
        return self._until_next()

    def drain(self) -> None:
        """Hand back what has not begun, wait for the rest, give up what does not end in time."""
        seconds = settings.WORKER_DRAIN_TIMEOUT.total_seconds()
        deadline = clock.steady() + seconds
        self._in_order(partial(node.end, self.me, status="draining"))
        self._in_order(partial(self._hand_back, self.slots.take_back()))
        while self.slots.running and clock.steady() < deadline:
            time.sleep(0.02)
        # First, with the last lines of what is given up: it holds rows for a moment.
        self.follower.end()
        left = self.slots.take_over()
        if left:
            reason = f"not finished within WORKER_DRAIN_TIMEOUT_S ({seconds:g} s) of the stop of {self.me.name}"
            claims = [attempt.claimed.claim_id for attempt in left]
            self._in_order(partial(reclaim.give_up, claims, reason=reason))
            for attempt in left:
                attempt.settled = True
        if not self.finisher.end(within=max(1.0, deadline - clock.steady())):
            logger.error(
                "results not stored items=%s: their items run again",
                self.finisher.pending(),
            )
        self.beat.stop()
        self.listener.stop()
        self._in_order(
            partial(node.end, self.me, text=f"drained, {len(left)} given up")
        )
        logger.info("worker stopped node=%s given_up=%s", self.me.id, len(left))

    def _in_order(self, act: Callable[[], object]) -> None:
        """One step of the drain. Where the database is away, others do it for us in time."""
        try:
            act()
        except (DatabaseError, InterfaceError) as problem:
            logger.warning(
                "drain goes on without the database: %s",
                " ".join(str(problem).split())[:300],
            )
            close_old_connections()

    def report(self) -> dict[str, object]:
        """Written with each beat."""
        draining = self.stopping.is_set()
        return report_of(self.slots, live=self._live, draining=draining)

    def _look(self, now: float) -> None:
        """Settings and pauses every five seconds, suspects every ten."""
        self._next_look = now + LOOK
        before, self._live = self._live, live.refresh()
        self._apply()  # a stuck thread may have ended, too
        if before != self._live:
            self._next_claim = 0.0
        if now < self._next_suspects:
            return
        self._next_suspects = now + SUSPECTS
        self._waiting_suspect_since = suspect_due_since(
            self._known(), paused_tenants=self._live.paused_tenants()
        )

    def _apply(self) -> None:
        """Bring slots and pool to what the settings ask and the pool serves."""
        asked = self._live.policy.concurrency
        connections.resize(asked + connections.RESERVED)
        serves = connections.serves_items()
        if serves is not None:  # stuck threads may hold their connections
            asked = min(asked, serves - len(self.slots.stuck))
        self.slots.resize(max(1, asked))

    def _watch(self) -> None:
        """Time limits; what was claimed and has not begun; stuck threads."""
        for attempt in self.slots.over_time():
            logger.error(
                "time limit reached handler=%s tenant=%s claim=%s",
                attempt.claimed.handler,
                attempt.claimed.tenant,
                attempt.claimed.claim_id,
            )
            self.finisher.put(slots.failed_by_limit(attempt))
            attempt.settled = True
            self._apply()
        self._hand_back(self.slots.take_back(claimed_before=clock.steady() - UNBEGUN))
        if not self._live.policy.start_workers:
            self._hand_back(self.slots.take_back())
        # Most end by themselves, at their next query.
        before = clock.steady() - LOOK
        stuck = [a for a in self.slots.stuck.copy().values() if a.deadline < before]
        if len(stuck) > self.slots.offered:
            logger.error(
                "more stuck threads than slots stuck=%s: ending for a fresh start",
                len(stuck),
            )
            self.stop(exit_code=EXIT_STUCK)

    def _may_claim(self) -> bool:
        alone = self._alone in self.slots.waiting or self._alone in self.slots.running
        return (
            self._live.policy.start_workers
            and not alone
            and self._fresh()
            and not self.stopping.is_set()
        )

    def _claim(self) -> None:
        """Fill the free slots; a suspect runs alone."""
        if (since := self._waiting_suspect_since) is not None:
            if not self.slots.in_hand():
                self._claim_suspect()
                return
            if (clock.now() - since).total_seconds() > OVERDUE:
                return  # nothing new until it has run
        keys = known = self._known()
        asked: set[str] = set()
        until = clock.steady() + CLAIMING
        while self._may_claim() and (demand := self._demand(keys)).asks():
            if clock.steady() > until:
                self.wake()  # go on after a look at everything else
                break
            got = claim(
                demand, node_id=self.me.id, node=self.me.name, marks=self._marks
            )
            counts = Counter(c.handler for c in got)
            self.slots.add(
                self._attempt(c, prefetched=c.handler in demand.fast) for c in got
            )
            # Those that gave all they were asked for have more: ask them for what is free.
            keys = demand.may_have_more(counts)
            self._more = (self._more - {*demand.slow, *demand.fast}) | set(keys)
            asked |= {*demand.slow, *demand.fast}
        # Of those that there was no room to ask nothing is known: ask when there is.
        self._more |= set(known) - asked

    def _claim_suspect(self) -> None:
        self._waiting_suspect_since = None
        got = claim_suspect(
            self._known(),
            node_id=self.me.id,
            node=self.me.name,
            paused_tenants=self._live.paused_tenants(),
        )
        for claimed in got:
            logger.warning(
                "suspect runs alone handler=%s tenant=%s recoveries=%s",
                claimed.handler,
                claimed.tenant,
                claimed.recoveries,
            )
            self._alone = self._attempt(claimed, prefetched=False)
            self.slots.add([self._alone])

    def _attempt(self, claimed: Claimed, *, prefetched: bool) -> Attempt:
        return Attempt(
            claimed, Transcript(claim_id=claimed.claim_id), prefetched=prefetched
        )

    def _demand(self, keys: list[str]) -> Demand:
        return demand_of(
            keys,
            slots=self.slots,
            with_work=self._more,
            paused_tenants=self._live.paused_tenants(),
        )

    def _known(self) -> list[str]:
        """Keys that this release runs and nobody paused."""
        return [key for key in registry.rows() if not self._live.paused_handler(key)]

    def _until_next(self) -> float:
        now = clock.steady()
        dues = [
            self._next_look - now,
            self._next_reclaim - now,
            self.slots.next_deadline(),
        ]
        if self._may_claim() and not self._more:
            dues.append(self._next_claim - now)
        if self.slots.waiting:
            dues.append(UNBEGUN / 4)
        return min(dues)

    def _finished(self, finished: Finished) -> None:
        """A slot's attempt has ended."""
        self.finisher.put(finished)
        if finished.attempt is self._alone:
            self._next_look = self._next_suspects = 0.0  # there may be another suspect
            self._hurry()
        if self._more and self.slots.in_hand() <= PREFETCH - REFILL:
            self.wake()

    def _hurry(self) -> None:
        """There may be work: claim at the next pass, which is now."""
        self._next_claim = 0.0
        self.wake()

    def _hand_back(self, attempts: list[Attempt]) -> None:
        if attempts:
            finish.hand_back(
                [a.claimed.id for a in attempts], [a.claimed.claim_id for a in attempts]
            )
            wakeup.notify()

    def _fresh(self) -> bool:
        return self.beat.fresh()

    def _judge(self) -> None:
        """Others that fell silent: mark them, and take what they held."""
        if self.beat.may_judge() and node.mark_silent():
            self._reclaim()

    def _reclaim(self) -> None:
        timeout = self._live.policy.claim_timeout
        reclaim.reclaim(claim_timeout=timeout if self.beat.may_judge() else None)


def _tune() -> None:
    """Settings of the interpreter for many short runs side by side."""
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # what the start made stays
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    # As `logging` itself advises: no walk up the stack for each line.
    logging._srcfile = None
    # Nobody prints these of a line, and each costs as much as the line's own text.
    for name in ("logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks"):
        setattr(logging, name, False)
