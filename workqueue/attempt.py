"""One attempt in this process: a claimed item, from the claim to the finish.

Its state changes hands by `dict.pop` in the worker, never here; this object only
carries what the threads that touch it need to see.
"""

import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from audit import clock
from audit.transcript import Transcript
from workqueue.claim import Claimed
from workqueue.context import Outcome


@dataclass(slots=True, eq=False)
class Attempt:
    """A claim that this process holds."""

    claimed: Claimed
    transcript: Transcript
    taken_at: float = field(default_factory=clock.steady)  # when the claim returned
    prefetched: bool = False
    started_at: datetime | None = None
    deadline: float = 0.0  # steady; when the time limit fails it
    thread: threading.Thread | None = None
    closed: bool = False  # the door: its next query raises ClaimLost
    settled: bool = (
        False  # by who took it out of what runs; its thread's result is late
    )
    progress: dict[str, Any] | None = None  # what its handler told last
    shown: dict[str, Any] | None = None  # of that, what its item's page is told
    shown_left_out: int = 0  # lines, as that page is told


class Finished(NamedTuple):
    """An attempt that ended, as the finisher takes it."""

    attempt: Attempt
    outcome: Outcome
    word: str  # the ledger's
    error: str
    finished_at: datetime
