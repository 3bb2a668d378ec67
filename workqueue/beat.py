"""beat: the thread that keeps a process's row fresh.

It never waits for the pool or for a frozen server: it has a guarded connection of its
own (`connections.unpooled`). Tasks of the process, renewing claims or the lease for
example, run in it after each beat that succeeded. What others rely on:
- a beat counts from before its request was sent, so `fresh` never errs to the long side;
- `may_judge` only after beats without a gap for a whole keep-alive;
- a connection that is lost costs one beat at most, and an outage one attempt a second.
"""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, connections

from audit import clock
from workqueue import node, sql
from workqueue.connections import unpooled
from workqueue.models import Node
from workqueue.node import Me

logger = logging.getLogger(__name__)

RETRY = 1.0  # seconds between attempts while they fail
GAP = 0.25  # of an interval: what two beats may be apart besides the interval
SHORTEST_GAP = 0.3  # seconds


class Beat:
    """The beat of this process, in a daemon thread of its own."""

    def __init__(
        self,
        *,
        me: Me,
        report: Callable[[], dict[str, Any]],
        tasks: Sequence[Callable[[], None]] = (),
        interval: timedelta | None = None,
    ) -> None:
        """`tasks` run in this thread after each beat; what one raises is logged."""
        self._me = me
        self._report = report
        self._tasks = tasks
        self._interval = (interval or node.interval()).total_seconds()
        self._trusted = settings.KEEP_ALIVE.total_seconds() - self._interval
        # Registering was the first beat.
        self._confirmed = self._unbroken_since = me.registered
        self._failures = 0
        self._nudge = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for its last statement."""
        self._stopping.set()
        self._nudge.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def beat_now(self) -> None:
        """Beat at once, a new report for example. From any thread; does not wait."""
        self._nudge.set()

    def fresh(self) -> bool:
        """Whether others must still believe that this process lives, one beat spared."""
        return clock.steady() - self._confirmed < self._trusted

    def may_judge(self) -> bool:
        """Whether its own beats have succeeded without a gap for a full keep-alive."""
        unbroken = self._confirmed - self._unbroken_since
        return self.fresh() and unbroken >= settings.KEEP_ALIVE.total_seconds()

    def _run(self) -> None:
        unpooled()
        try:
            due = self._confirmed + self._interval
            while not self._stopping.is_set():
                self._nudge.wait(max(0.0, due - clock.steady()))
                self._nudge.clear()
                if not self._stopping.is_set():
                    due = clock.steady() + self._once()
        finally:
            connections.close_all()

    def _once(self) -> float:
        """One beat and its tasks; return the seconds until the next, from its start."""
        started = clock.steady()
        try:
            self._beat()
        except Exception as problem:  # nothing may end this thread
            return self._failed(problem)
        if self._failures > 1:
            logger.info("beat is back node=%s after=%s", self._me.id, self._failures)
        self._failures = 0
        for task in self._tasks:
            self._do(task)
        return max(0.0, self._interval - (clock.steady() - started))

    def _beat(self) -> None:
        report = self._report_text()
        sent = clock.steady()
        moment = self._write(report)
        if moment is None:
            logger.warning("marked stopped, running again node=%s", self._me.id)
            node.come_back(self._me, report=json.loads(report))
            sent = clock.steady()
            moment = self._write(report)
        if moment is not None:
            clock.sample(database=moment, sent=sent, received=clock.steady())
        if sent - self._confirmed > self._interval + max(
            GAP * self._interval, SHORTEST_GAP
        ):
            self._unbroken_since = sent
        self._confirmed = sent

    def _write(self, report: str) -> datetime | None:
        """Send the beat. None: no row of this process that is not stopped."""
        fixed = clock.fixed()
        params = {
            "now": connection.ops.adapt_datetimefield_value(fixed) if fixed else None,
            "skew_ms": _bounded(clock.skew() // timedelta(milliseconds=1)),
            "report": report,
            "id": Node._meta.pk.get_db_prep_value(self._me.id, connection),
        }
        with connection.cursor() as cursor:
            cursor.execute(sql.BEAT, params)
            rows = cursor.fetchall()
        return node.as_moment(rows[0][0]) if rows else None

    def _report_text(self) -> str:
        """The report as JSON. One that cannot be made says so, and stops no beat."""
        try:
            return json.dumps(self._report(), allow_nan=False).replace("\\u0000", "")
        except Exception as problem:
            logger.exception("report failed node=%s", self._me.id)
            return json.dumps({"problem": f"{type(problem).__name__}: {problem}"[:500]})

    def _failed(self, problem: Exception) -> float:
        self._failures += 1
        with suppress(Exception):
            connection.close()
        if self._failures == 1:
            return 0.0  # its backend may have been terminated: that costs no beat
        if self._failures == 2:
            text = " ".join(str(problem).split())[:300]
            known = isinstance(problem, DatabaseError | InterfaceError)
            logger.warning(
                "beat failed node=%s: %s", self._me.id, text, exc_info=not known
            )
        return RETRY

    def _do(self, task: Callable[[], None]) -> None:
        try:
            task()
        except Exception as problem:
            name = getattr(task, "__name__", str(task))
            text = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
            logger.warning("task of the beat failed task=%s: %s", name, text)
            with suppress(Exception):
                connection.close_if_unusable_or_obsolete()


def _bounded(milliseconds: int) -> int:
    """A clock that is off by weeks must not overflow the column."""
    return max(-(2**31), min(2**31 - 1, milliseconds))
