"""The slots of a worker: its threads, and what they have in hand.

A claimed item waits, runs, and is done. Who takes its key out of `waiting` or
`running` owns what happens to it next (dict.pop is atomic), so a slot, the watch over
time limits and the hand-back at a drain never act on one attempt together. What its
thread brings after that waits until the owner has said that it is settled.

Daemon threads of our own: a ThreadPoolExecutor with a stuck thread holds up exit.
"""

import logging
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from statistics import median
from uuid import UUID

from django.db import connections

from audit import clock
from workqueue import run
from workqueue.attempt import Attempt, Finished
from workqueue.context import Outcome

logger = logging.getLogger(__name__)

SAMPLES = 32  # durations that a handler's median is taken of
CHUNK = 0.02  # seconds of work that a slot takes at a time of what was claimed ahead
MOST = 200  # items of a chunk
ENOUGH = 5  # samples before a handler may be called fast


class Slots:
    """Threads that run attempts, and the attempts."""

    def __init__(
        self,
        *,
        done: Callable[[Finished], None],
        ready: Callable[[], bool],
        stopping: Callable[[], bool],
    ) -> None:
        """`done` takes each finished attempt; nothing starts while `ready` says False."""
        # Always copied before they are walked: other threads change them at any moment.
        # By the attempt itself: hashing a UUID costs more than all else that slots do.
        self.waiting: dict[Attempt, Attempt] = {}
        self.running: dict[Attempt, Attempt] = {}
        # Failed by time limit; their threads go on.
        self.stuck: dict[Attempt, Attempt] = {}
        self.offered = 0  # threads wanted
        self._done, self._ready, self._stopping = done, ready, stopping
        self._urgent: deque[Attempt] = deque()  # claimed into a free slot
        self._prefetched: deque[Attempt] = deque()
        self._tokens: SimpleQueue[int] = SimpleQueue()  # take so many; 0: retire
        self._threads = 0
        self._durations: dict[str, deque[float]] = {}

    def resize(self, wanted: int) -> None:
        """Offer so many slots: new threads at once, fewer as they fall idle."""
        self.offered = wanted
        while self._threads < wanted:
            self._start_thread()
        while self._threads > wanted:
            self._threads -= 1
            self._tokens.put(0)

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Take claimed attempts in hand.

        Short runs go to the slots in chunks: a thread awake for each would only take the
        interpreter from the thread that stores them (2,600/s instead of 9,000/s).
        """
        ahead: Counter[str] = Counter()
        for attempt in attempts:
            self.waiting[attempt] = attempt
            if attempt.prefetched:
                self._prefetched.append(attempt)
                ahead[attempt.claimed.handler] += 1
            else:
                self._urgent.append(attempt)
                self._tokens.put(1)
        for handler, count in ahead.items():
            size = min(
                MOST, max(1, int(CHUNK / max(self.median(handler) or CHUNK, 1e-6)))
            )
            for left in range(count, 0, -size):
                self._tokens.put(min(size, left))

    def take_back(self, *, claimed_before: float | None = None) -> list[Attempt]:
        """Take out what has not begun (and, where given, was claimed before that steady time)."""
        candidates = [
            a
            for a in list(self.waiting.copy().values())
            if claimed_before is None or a.taken_at < claimed_before
        ]
        return [a for a in candidates if self.waiting.pop(a, None)]

    def take_over(self) -> list[Attempt]:
        """Take out whatever runs and close its door: the end of a drain."""
        taken = [
            a for a in list(self.running.copy().values()) if self.running.pop(a, None)
        ]
        for attempt in taken:
            attempt.closed = True
        return taken

    def over_time(self) -> list[Attempt]:
        """Take out the running attempts whose time limit has passed; their threads become stuck."""
        now = clock.steady()
        late = [a for a in list(self.running.copy().values()) if a.deadline <= now]
        taken = [a for a in late if self.running.pop(a, None)]
        for attempt in taken:
            attempt.closed = True
            self.stuck[attempt] = attempt
            self._threads -= 1  # it is no slot any more
        return taken

    def next_deadline(self) -> float:
        """Seconds until the first time limit of what runs; infinite where nothing does."""
        return (
            min(
                (a.deadline for a in list(self.running.copy().values())),
                default=float("inf"),
            )
            - clock.steady()
        )

    def in_hand(self) -> int:
        """What waits and runs."""
        return len(self.waiting) + len(self.running)

    def claims(self) -> list[UUID]:
        """The claims of what waits and runs."""
        return [
            a.claimed.claim_id for a in [*self.waiting.copy(), *self.running.copy()]
        ]

    def by_handler(self) -> Counter[str]:
        """How much of each handler is in hand."""
        return Counter(
            a.claimed.handler
            for a in [*self.running.copy().values(), *self.waiting.copy().values()]
        )

    def median(self, handler: str) -> float | None:
        """Seconds that the handler's recent runs took; None before there are enough."""
        durations = self._durations.get(handler)
        return (
            median(list(durations)) if durations and len(durations) >= ENOUGH else None
        )

    def _start_thread(self) -> None:
        self._threads += 1
        threading.Thread(target=self._slot, name="slot", daemon=True).start()

    def _slot(self) -> None:
        try:
            while count := self._tokens.get():
                for _ in range(count):
                    # A worker that cannot reach the database starts nothing.
                    while not self._ready():
                        time.sleep(0.1)
                    attempt = self._next()
                    if attempt and self._is_mine(attempt) and not self._run(attempt):
                        self._tokens.put(
                            count
                        )  # the rest is for the thread in its place
                        return
        finally:
            connections.close_all()

    def _next(self) -> Attempt | None:
        # The first again: what made a token may have gone to another slot meanwhile.
        for queue in (self._urgent, self._prefetched, self._urgent):
            try:
                return queue.popleft()
            except IndexError:
                continue
        return None

    def _is_mine(self, attempt: Attempt) -> bool:
        """Take it out of what waits. False: it was handed back."""
        return self.waiting.pop(attempt, None) is not None

    def _run(self, attempt: Attempt) -> bool:
        """Run it to its end. False: its time limit replaced this thread meanwhile."""
        began = clock.steady()
        attempt.thread = threading.current_thread()
        attempt.deadline = began + attempt.claimed.time_limit_s
        self.running[attempt] = attempt
        finished = run.run(attempt, stopping=self._stopping)
        mine = self.running.pop(attempt, None) is not None
        if not mine:
            # Whoever took it out speaks first: finish keeps the first result of a claim.
            while not attempt.settled:
                time.sleep(0.01)
            self.stuck.pop(attempt, None)
        handler = attempt.claimed.handler
        durations = self._durations.get(handler) or self._durations.setdefault(
            handler, deque(maxlen=SAMPLES)
        )
        durations.append(clock.steady() - began)
        # One that came after its limit is kept as well: finish makes it a late result.
        self._done(finished)
        return mine


def failed_by_limit(attempt: Attempt) -> Finished:
    """The outcome of an attempt that ran over its limit, its thread's stack in the transcript."""
    limit = attempt.claimed.time_limit_s
    frame = (
        sys._current_frames().get(attempt.thread.ident or 0) if attempt.thread else None
    )
    stack = (
        "".join(traceback.format_stack(frame)) if frame else "its thread has ended\n"
    )
    attempt.transcript.write(
        logging.ERROR,
        f"time limit of {limit} s reached; its thread stands here:\n{stack}",
    )
    error = f"time limit of {limit} s reached; what it still does does not count"
    return Finished(attempt, Outcome(failed=1), "failed", error, clock.now())
