"""What a job is given while it runs."""

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from audit import clock
from audit.transcript import Transcript
from jobworker.exceptions import Stopped
from jobworker.weight import Weight

MOST_PHASES = 100  # remembered of a job; later ones only replace the last


@dataclass(slots=True, eq=False, kw_only=True)
class Sign:
    """What the job has told of itself and the keeper has not stored yet."""

    progress: int = 0
    phase: str = ""
    phases: list[dict[str, str]] = field(default_factory=list)
    at: datetime | None = None  # of the last line, phase or progress
    urgent: bool = False  # a new phase or progress: store it with the next flush
    pending: bool = False  # something is not stored yet


class JobContext:
    """One attempt of a job, as its module sees it. Safe from any thread of the job."""

    def __init__(
        self,
        *,
        job_id: UUID,
        type: str,
        tenant_id: int,
        tenant: str,
        claim_id: UUID,
        node: str,
        now: datetime,
        deadline: datetime,
        transcript: Transcript,
        weight: Weight,
        save: Callable[[str, dict[str, Any]], None],
        created_by: str = "",
    ) -> None:
        """`save` commits one column of the job's row at once: external_ref or result."""
        self.job_id = job_id
        self.type = type
        self.tenant_id = tenant_id
        self.tenant = tenant  # slug
        self.claim_id = claim_id
        self.node = node  # "host, pid" of the worker
        self.now = now  # database time at the start
        self.deadline = deadline  # when the time limit stops it
        self.created_by = created_by
        self.result: dict[str, Any] = {}
        self.sign = Sign()
        self.stopping = threading.Event()  # set: stop; `reason` says why
        self.reason = ""  # "" | cancel | drain | limit | lost
        self.kill_at = math.inf  # clock.steady(); programs still there are killed then
        self._draining = threading.Event()  # the worker stops soon: look once more
        self._told_of_drain = False
        self._waker = threading.Condition()
        self._transcript = transcript
        self._weight = weight
        self._save = save

    # --- telling

    def log(self, line: str, level: int = logging.INFO) -> None:
        """Write lines of output. Stored within 250 ms, followed live on the job's page."""
        self._transcript.write(level, line)
        self.sign.at, self.sign.pending = clock.now(), True

    def phase(self, name: str) -> None:
        """Say what it does now, in a few words."""
        sign, now = self.sign, clock.now()
        if sign.phase == name:
            return
        entry = {"name": name[:200], "at": now.isoformat()}
        sign.phases = [*sign.phases[: MOST_PHASES - 1], entry]
        sign.phase, sign.at, sign.urgent, sign.pending = name[:200], now, True, True

    def progress(self, percent: float) -> None:
        """Say how far it is, 0 to 100. It never falls."""
        value = max(0, min(100, int(percent)))
        if value > self.sign.progress:
            self.sign.progress, self.sign.at = value, clock.now()
            self.sign.urgent = self.sign.pending = True

    def save_ref(self, ref: dict[str, Any]) -> None:
        """Keep what was begun outside, committed at once: right after the provider's call."""
        self._save("external_ref", ref)

    def save_result(self, result: dict[str, Any]) -> None:
        """Keep a part of the result, committed at once; the end adds to it."""
        self.result = {**self.result, **result}
        self._save("result", self.result)

    # --- being told

    def check_cancel(self) -> None:
        """Raise Stopped where the job was told to stop. Costs nothing: call it often."""
        if self.stopping.is_set():
            raise Stopped(self.stopped_words())

    def sleep(self, seconds: float) -> None:
        """Wait for the outside: holds no connection and no weight meanwhile.

        Returns only when there is weight for the job again. Raises Stopped when it is
        told to stop. When the worker begins to drain it returns early, once, so that
        a poll may find its task finished.
        """
        self.check_cancel()
        with self._weight.set_down(self.claim_id, self._stop_waiting):
            deadline = clock.steady() + seconds
            with self._waker:
                while not self.stopping.is_set() and not self._first_word_of_drain():
                    if (left := deadline - clock.steady()) <= 0:
                        break
                    self._waker.wait(min(left, 3600.0))
        self.check_cancel()

    def stop(self, reason: str, *, kill_at: float = math.inf) -> None:
        """Tell the job to stop. The first reason stays; an earlier kill_at counts."""
        self.reason = self.reason or reason
        self.kill_at = min(self.kill_at, kill_at)
        self.stopping.set()
        self._wake()

    def drain(self) -> None:
        """Tell a sleeping job that its worker stops soon."""
        self._draining.set()
        self._wake()

    def stopped_words(self) -> str:
        """Why it stops, for its error."""
        return {
            "cancel": "cancelled",
            "drain": f"its worker {self.node} stopped",
            "limit": "its time limit is reached",
            "lost": "its claim was taken away: this worker counted as stopped",
        }.get(self.reason, "told to stop")

    def _wake(self) -> None:
        with self._waker:
            self._waker.notify_all()
        self._weight.nudge()

    def _stop_waiting(self) -> bool:
        return self.stopping.is_set()

    def _first_word_of_drain(self) -> bool:
        if self._draining.is_set() and not self._told_of_drain:
            self._told_of_drain = True
            return True
        return False
