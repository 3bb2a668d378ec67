"""keeper: stores what running jobs have said, a batch at a time.

One INSERT for the lines of all jobs of the process, five times a second at most, and a
job's own row once a second or when its phase or progress changed. Only where the claim
holds: a run that somebody closed has counted its lines. A thread of its own: a database
that is slow must delay neither the claiming nor the heartbeat.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from django.db import close_old_connections, connections, transaction

from audit import clock, transcript
from audit.text import gate, gate_json
from audit.transcript import LineRow
from jobworker.attempt import Attempt
from jobworker.claim import still_held
from jobworker.models import Job
from workqueue.exceptions import may_work_later

logger = logging.getLogger(__name__)

EVERY = 0.2  # seconds between batches
ROW_EVERY = 1.0  # seconds between updates of a job's row that tell nothing urgent


class Keeper:
    """The thread that stores lines, phases and progress."""

    def __init__(self, *, running: Callable[[], Iterable[Attempt]]) -> None:
        """`running`: the attempts of this process."""
        self._running = running
        self._some = threading.Event()
        self._ended = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._loop, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """A job was begun."""
        self._some.set()

    def end(self) -> None:
        """Store all there is and stop; later lines are stored with the end of their job."""
        self._ended.set()
        self._some.set()
        self._thread.join(2.0)

    def _loop(self) -> None:
        try:
            last = False
            while not last:
                last = self._ended.wait(EVERY)
                if attempts := list(self._running()):
                    self._store_all(attempts, last=last)
                elif not last:
                    self._rest()
        finally:
            connections.close_all()

    def _rest(self) -> None:
        """Wait for a job."""
        self._some.clear()
        close_old_connections()
        if not list(self._running()):
            self._some.wait()

    def _store_all(self, attempts: list[Attempt], *, last: bool = False) -> None:
        # One whose end is being stored keeps its lines for that.
        mine = [each for each in attempts if each.lock.acquire(blocking=False)]
        try:
            self._store(mine, last=last)
            self._failing = False
        except Exception as problem:  # nothing may end this thread
            if may_work_later(problem):
                self._later(problem)
                return
            for each in mine:  # what one job says is no matter of the others
                self._store_alone(each, last=last)
        finally:
            for each in mine:
                each.lock.release()

    def _store_alone(self, attempt: Attempt, *, last: bool) -> None:
        try:
            self._store([attempt], last=last)
        except Exception as problem:
            if may_work_later(problem):
                self._later(problem)
                return
            logger.exception("lines left out job=%s", attempt.job.id)
            attempt.transcript.leave_out()

    def _later(self, problem: Exception) -> None:
        if not self._failing:
            text = " ".join(str(problem).split())[:300]
            logger.warning("output is kept for later: %s", text)
        self._failing = True
        close_old_connections()

    def _store(self, attempts: list[Attempt], *, last: bool) -> None:
        # What a closed one has said since goes with its end, or into its late result.
        attempts = [each for each in attempts if not each.closed]
        lines = {each: each.transcript.take(last=last) for each in attempts}
        now = clock.steady()
        telling = {each for each in attempts if last or _tells(each, lines[each], now)}
        talking = [each for each in attempts if lines[each] or each in telling]
        if not talking:
            return
        try:
            with transaction.atomic():
                held = still_held([each.claimed.claim_id for each in talking])
                kept = [each for each in talking if each.claimed.claim_id in held]
                transcript.store([line for each in kept for line in lines[each]])
                for each in kept:
                    if each in telling:
                        _tell(each, lines[each])
        except Exception:
            for each in telling:  # their rows are told of nothing
                each.context.sign.urgent = True
            raise
        for each in kept:
            if stored := lines[each]:
                each.transcript.stored(len(stored))
                each.stored_lines += len(stored)
                lag = clock.now() - stored[0].at
                each.lag_ms = lag // timedelta(milliseconds=1)
            if each in telling:
                each.told_at = now


def _tells(attempt: Attempt, lines: Sequence[LineRow], now: float) -> bool:
    """Whether its row is to be told how it goes."""
    sign = attempt.context.sign
    due = now - attempt.told_at >= ROW_EVERY
    return sign.urgent or (due and (sign.pending or bool(lines)))


def _tell(attempt: Attempt, lines: Sequence[LineRow]) -> None:
    """Its row. What is set meanwhile is told the next time."""
    sign = attempt.context.sign
    sign.urgent = sign.pending = False
    last = lines[-1].at if lines else None
    moments = [at for at in (sign.at, last) if at is not None]
    values = {
        "progress": sign.progress,
        "phase": gate(sign.phase, limit=200),
        "phases": gate_json(sign.phases),
        "line_count": attempt.stored_lines + len(lines),
        "dropped_lines": attempt.transcript.dropped,
        "output_lag_ms": attempt.lag_ms,
        **({"progress_at": max(moments)} if moments else {}),
    }
    mine = Job.objects.running().filter(
        id=attempt.job.id, claim_id=attempt.claimed.claim_id
    )
    mine.update(**values)
