"""The job worker's loop: re-read the caps, end what must end, claim what fits, report.

Threads: this loop claims; each job has a thread of its own; the keeper stores output;
the beat keeps the claims and judges others. Called by runjobworker. What must stay
true: a claim only within the caps in force and the pool's reach; no stored value stops
the loop; nothing starts on a beat that is too old.
"""

import logging
import math
import threading
from collections import Counter
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit import clock
from audit.transcript import Transcript
from jobworker import installed, registry, run
from jobworker.attempt import Attempt, Claim
from jobworker.caps import Limits, limits
from jobworker.claim import Fits, claim, give_back
from jobworker.context import JobContext
from jobworker.drain import LAST, LEAVE, Steps, drain
from jobworker.finish import end
from jobworker.holding import Holding
from jobworker.keeper import Keeper
from jobworker.look import Look, look
from jobworker.models import Job
from jobworker.reconcile import give_up, reconcile
from jobworker.report import report_of, start_words
from jobworker.room import Room
from jobworker.submit import CHANNEL
from jobworker.weight import Weight
from workqueue import connections, node, reclaim, wakeup
from workqueue.beat import Beat
from workqueue.loop import Loop
from workqueue.models import Node
from workqueue.worker import EXIT_STUCK

logger = logging.getLogger(__name__)

IDLE = 3.0  # seconds between passes: with the reading, caps are in force within 5
BUSY = 1.0  # seconds between passes while jobs run: a cancel is seen within 2
CANCEL_PATIENCE = 200.0  # seconds that a job has to end; Packer alone is given 120
LIMIT_PATIENCE = CANCEL_PATIENCE  # programs are given the same time


class Supervisor(Loop):
    """One job worker process."""

    name = "jobworker"
    _end = math.inf  # clock.steady(); of the drain

    def prepare(self) -> None:
        """Register, fail what others left behind, and start the threads."""
        connections.use_pool(kind="jobworker")
        self.me = node.register(kind="jobworker", report={})
        self.attempts: dict[Attempt, Attempt] = {}  # those that run
        # Ended ones whose threads go on, and who stores the end.
        self.stuck: dict[Attempt, threading.Thread] = {}
        self._doubtful: set[UUID] = set()  # claims whose reply was lost
        self.seen: Look = look(self.me.id)
        self._threads = self.seen.caps.ceiling()  # the one value that is not live
        self.weight = Weight(freed=self._hurry)
        self.limits: Limits = self._limits()
        holding = Holding(running=self.running)
        self.beat = Beat(me=self.me, report=self.report, tasks=(holding, self._judge))
        self.keeper = Keeper(running=self.running)
        self.listener = wakeup.Listener(self.wake, channel=CHANNEL)
        reconcile()
        for part in (self.beat, self.keeper, self.listener):
            part.start()
        self.weight.allow(self.limits.usable)
        logger.info("%s", start_words(self.limits))
        self.beat.beat_now()

    def poll(self) -> float:
        """One pass."""
        self._end_what_must()
        self._look()
        self._start_afresh_if_spent()
        while not self.stopping.is_set() and self.beat.fresh() and self._claim():
            pass
        return BUSY if self.attempts else IDLE

    def stop(self, *, exit_code: int = 0) -> None:
        """Begin the drain. Its time runs from here: a pass that waits for the database takes of it."""
        seconds = settings.WORKER_DRAIN_TIMEOUT.total_seconds()
        self._end = min(self._end, clock.steady() + seconds)
        super().stop(exit_code=exit_code)

    def drain(self) -> None:
        """Give what runs its time, give up the rest in order."""
        steps = Steps(end=self._end + LAST)

        def attend() -> None:
            self._end_what_must()
            steps.do(self._look)

        steps.do(self._begin_drain)
        left = drain(self.running, end=self._end, look=attend)
        steps.do(partial(self._leave, left), within=LEAVE)
        logger.info("job worker stopped node=%s given_up=%s", self.me.id, len(left))

    def running(self) -> list[Attempt]:
        """The attempts in hand."""
        return list(self.attempts.copy())

    def report(self) -> dict[str, object]:
        """Written with each beat."""
        return report_of(
            limits=self.limits,
            seen=self.seen,
            running=self.running(),
            stuck=len(self.stuck),
            weight=self.weight,
            draining=self.stopping.is_set(),
        )

    def _look(self) -> None:
        """Read caps, pauses and cancels; bring the process to what they ask."""
        self._give_back_doubtful()
        before, self.seen = self.seen, look(self.me.id)
        found = self._limits()
        if found != self.limits:
            self.limits = found
            self.weight.allow(found.usable)
            logger.info("%s", start_words(found))
        if before.version != self.seen.version or before.adjusted != self.seen.adjusted:
            for one in self.seen.adjusted:
                logger.warning(
                    "setting %s asked=%s used=%s: %s",
                    one.key,
                    one.asked,
                    one.used,
                    one.why,
                )
            self.beat.beat_now()  # the card follows at once
        for each in self.running():
            if each.claimed.claim_id in self.seen.cancelled:
                each.stop("cancel", patience=CANCEL_PATIENCE)

    def _limits(self) -> Limits:
        caps = self.seen.caps
        where = self.me.name.partition(",")[0]
        lacking = installed.lacking(registry.rows(), caps, where=where)
        return limits(
            caps, threads=self._threads, stuck=len(self.stuck), lacking=lacking
        )

    def _end_what_must(self) -> None:
        """Time limits; and jobs that were told to stop and do not."""
        now = clock.steady()
        for each in self.running():
            if now >= each.deadline:
                each.stop("limit", patience=LIMIT_PATIENCE)
            if now >= each.stop_at and self._take_out(each):
                self.stuck[each] = run.end_without_its_thread(each)
                logger.error(
                    "job does not stop, its thread is stuck job=%s", each.job.id
                )

    def _start_afresh_if_spent(self) -> None:
        """End where stuck threads leave no thread, or no connections, for one more job."""
        spent = not self.limits.usable or len(self.stuck) >= self.limits.threads
        if spent and not self.attempts:
            logger.error(
                "stuck threads leave no room for a job stuck=%s: ending for a fresh start",
                len(self.stuck),
            )
            self.stop(exit_code=EXIT_STUCK)

    def _claim(self) -> bool:
        """Claim and begin one job. False: nothing fits."""
        tiers = self._tiers_with_room() if self.seen.waiting else []
        if not tiers:
            return False
        fits = Fits(
            tiers=tiers,
            types=self._types(),
            paused_tenants=self.seen.live.paused_tenants(),
        )
        claim_id = clock.uuid7()
        try:
            job = claim(fits, claim_id=claim_id, me=self.me, version=self.seen.version)
            if job is None:
                return False
            self._begin_or_fail(job, claim_id)
        except Exception:
            self._doubtful.add(claim_id)  # it never began: the next pass returns it
            raise
        return True

    def _give_back_doubtful(self) -> None:
        """Return claims whose reply was lost: where nothing else waits the look sees them again."""
        if self._doubtful:
            give_back(self._doubtful)
            self._doubtful.clear()

    def _begin_or_fail(self, job: Job, claim_id: UUID) -> None:
        """Begin it. A row that holds what no job has must not keep others from being claimed."""
        try:
            self._begin(job, claim_id)
        except (OverflowError, TypeError, ValueError) as problem:
            logger.exception("job cannot be begun job=%s", job.id)
            error = f"it could not be begun: {type(problem).__name__}: {problem}"
            with transaction.atomic():
                end(job, word="failed", code="unstartable", error=error)

    def _tiers_with_room(self) -> list[str]:
        caps = self.limits.caps
        room = Room(
            caps=caps.tiers,
            total=caps.total,
            usable=self.limits.usable,
            threads=self.limits.threads,
            running=Counter(each.job.tier for each in self.running()),
            awake=self.weight.taken(),
            stuck=len(self.stuck),
        )
        return [tier for tier in caps.tiers if not room.full(tier)]

    def _types(self) -> list[str]:
        """Known here, paused by nobody, and not better run by a worker that has the program."""
        elsewhere = (
            _able_elsewhere(self.me.id) if installed.lacks(registry.rows()) else set()
        )
        return [
            row.type
            for row in registry.types().values()
            if not self.seen.live.paused_handler(row.type)
            and not (installed.missing(row) and row.type in elsewhere)
        ]

    def _begin(self, job: Job, claim_id: UUID) -> None:
        claimed = Claim(job.id, job.type, job.tenant_slug, claim_id)
        transcript = Transcript(claim_id=claimed.claim_id)
        now = clock.now()
        context = JobContext(
            job_id=job.id,
            type=job.type,
            tenant_id=job.tenant_id,
            tenant=job.tenant_slug,
            claim_id=claimed.claim_id,
            node=job.node,
            now=now,
            deadline=now + timedelta(seconds=job.time_limit_s),
            transcript=transcript,
            weight=self.weight,
            save=partial(run.save, job.id, claimed.claim_id),
            created_by=job.created_by,
        )
        attempt = Attempt(
            job=job,
            claimed=claimed,
            context=context,
            transcript=transcript,
            deadline=clock.steady() + job.time_limit_s,
        )
        attempt.thread = threading.Thread(
            target=run.run,
            args=(attempt,),
            kwargs={"ended": self._ended},
            name=f"job {job.type}",
            daemon=True,
        )
        self.weight.take()
        self.attempts[attempt] = attempt
        logger.info(
            "job runner: claimed %s job %s… (tier=%s, in flight=%s)",
            job.type,
            str(job.id)[:4],
            job.tier,
            len(self.attempts),
        )
        try:
            attempt.thread.start()
        except RuntimeError:  # this machine starts no more threads
            self._take_out(attempt)
            raise
        self.keeper.wake()

    def _hurry(self) -> None:
        """There is room: look at once where something waits for it."""
        if self.seen.waiting and not self._failures:
            self.wake()

    def _ended(self, attempt: Attempt) -> None:
        """A job's thread has ended. In that thread."""
        if not self._take_out(attempt):
            self.stuck.pop(attempt, None)
        self.wake()

    def _take_out(self, attempt: Attempt) -> bool:
        if self.attempts.pop(attempt, None) is None:
            return False
        self.weight.put()
        return True

    def _judge(self) -> None:
        """Others that fell silent, and what stopped ones held. In the beat's thread."""
        may_judge = self.beat.may_judge()
        if may_judge and node.mark_silent():
            reclaim.reclaim(claim_timeout=self.seen.live.policy.claim_timeout)
        reconcile(may_judge=may_judge)

    def _begin_drain(self) -> None:
        node.end(self.me, status=Node.Status.DRAINING)
        self.beat.beat_now()
        self._look()

    def _leave(self, left: list[UUID]) -> None:
        """The last words. The beat before lines and mark: it locks those rows, and undoes the mark."""
        for storing in self.stuck.copy().values():
            storing.join()
        self.beat.stop()
        self.keeper.end()
        self.listener.stop()
        if left:
            give_up(left)
        node.end(self.me, text=f"drained, {len(left)} given up")


def _able_elsewhere(me: UUID) -> set[str]:
    """Types that another live job worker has the programs for."""
    found: set[str] = set()
    others = Node.objects.alive().filter(kind=Node.Kind.JOBWORKER).exclude(pk=me)
    for report in others.values_list("report", flat=True):
        if isinstance(report, dict) and isinstance(report.get("types"), list):
            lacks = report.get("lacks")
            gone = lacks.values() if isinstance(lacks, dict) else ()
            found |= {str(type) for type in report["types"]} - {
                str(type) for types in gone for type in types
            }
    return found
