"""One attempt in this process: a claimed job, from the claim to the finish."""

import math
import threading
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from audit import clock
from audit.transcript import Transcript
from jobworker.context import JobContext
from jobworker.models import Job


class Claim(NamedTuple):
    """What log lines and the door of the thread say of it; as items have it."""

    id: UUID
    handler: str  # the job's type
    tenant: str  # slug
    claim_id: UUID


@dataclass(slots=True, eq=False)
class Attempt:
    """A job that this process holds."""

    job: Job  # as it was claimed
    claimed: Claim
    context: JobContext
    transcript: Transcript
    deadline: float  # clock.steady(); the time limit
    thread: threading.Thread | None = None
    closed: bool = False  # the door: its next query raises ClaimLost
    stop_at: float = math.inf  # clock.steady(); told to stop, so it must end by then
    # Whoever stores lines of it, the keeper or its own finish.
    lock: threading.Lock = field(default_factory=threading.Lock)
    told_at: float = 0.0  # clock.steady(); when its row was last told how it goes
    stored_lines: int = 0
    lag_ms: int | None = None  # of the lines stored last

    def stop(self, reason: str, *, patience: float, kill_at: float = math.inf) -> None:
        """Tell it to stop, and remember until when (seconds from now) it should have ended."""
        if not self.context.stopping.is_set():
            self.stop_at = min(self.stop_at, clock.steady() + patience)
        self.context.stop(reason, kill_at=kill_at)
