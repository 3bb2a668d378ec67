"""Group commit: finished attempts are stored a batch at a time, in a thread of its own.

A batch is full at 400 items, at 10,000 lines of their transcripts, or 20 ms old; when
nothing else is in hand it goes at once. Each round trip hands the interpreter over and
back, so few large ones cost least.
A batch that fails by deadlock or lost connection is repeated until it is stored, with
the id under which a lost COMMIT reply is recognised.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from uuid import UUID, uuid4

from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from workqueue.attempt import Finished
from workqueue.finish import finish

logger = logging.getLogger(__name__)

BATCH = 400  # items
LINES = 10_000  # a transaction that stores more holds its items, and a snapshot, for seconds
WINDOW = 0.02  # seconds
LONGEST_BACKOFF = 5.0  # seconds


class Finisher:
    """The finishing thread of a worker."""

    def __init__(
        self,
        *,
        node_id: UUID,
        node: str,
        idle: Callable[[], bool],
        returned: Callable[[], None],
    ) -> None:
        """`idle`: nothing else is in hand. `returned`: some items went back to pending."""
        self._node_id, self._node, self._idle, self._returned = (
            node_id,
            node,
            idle,
            returned,
        )
        self._done: deque[Finished] = deque()
        self._batch: list[Finished] = []  # being stored
        self._some, self._full = threading.Event(), threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._loop, name="finisher", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def put(self, finished: Finished) -> None:
        """Take one. Called by slots; costs a few microseconds unless it fills a batch."""
        self._done.append(finished)
        if not self._some.is_set():
            self._some.set()
        urgent = (
            finished.attempt.claimed.abandon != "requeue"
        )  # starts at most once: stored at once
        if (
            urgent or len(self._done) >= BATCH or self._idle()
        ) and not self._full.is_set():
            self._full.set()

    def pending(self) -> int:
        """Results not stored yet."""
        return len(self._done) + len(self._batch)

    def claims(self) -> list[UUID]:
        """The claims of those results."""
        while True:
            try:
                waiting = list(self._done)
            except RuntimeError:  # a slot appended meanwhile
                continue
            return [f.attempt.claimed.claim_id for f in [*waiting, *self._batch]]

    def end(self, *, within: float) -> bool:
        """Store what there is; False: some are left after so many seconds."""
        self._ended = True
        self._some.set()
        self._full.set()
        self._thread.join(within)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        try:
            while not (self._ended and not self._done):
                self._some.wait(1.0)
                if self._done:
                    self._full.wait(WINDOW)
                self._full.clear()
                self._some.clear()
                while self._done:
                    self._store()
                    if len(self._done) < BATCH and not self._ended:
                        break
                if self._done:
                    self._some.set()
                close_old_connections()
        finally:
            connections.close_all()

    def _take(self) -> list[Finished]:
        """Move up to a batch over from the front; whoever asks for claims misses none.

        Never iterate over a deque that slots append to.
        """
        batch: list[Finished] = []
        self._batch = batch
        lines = 0
        while self._done and len(batch) < BATCH and lines < LINES:
            one = self._done[0]
            batch.append(one)
            self._done.popleft()
            lines += len(one.attempt.transcript.close().rest)
        return batch

    def _store(self) -> None:
        batch = self._take()
        finish_id, failures = uuid4(), 0
        while True:
            try:
                if finish(
                    batch, node_id=self._node_id, node=self._node, finish_id=finish_id
                ):
                    self._returned()
                break
            except (DatabaseError, InterfaceError) as problem:
                failures += 1
                logger.warning(
                    "finish repeated items=%s: %s",
                    len(batch),
                    " ".join(str(problem).split())[:300],
                )
                close_old_connections()
                time.sleep(min(LONGEST_BACKOFF, 0.05 * 2 ** min(failures, 10)))
            except Exception:  # never lose the thread: results would pile up unseen
                failures += 1
                logger.exception("finish failed items=%s", len(batch))
                close_old_connections()
                time.sleep(min(LONGEST_BACKOFF, 0.05 * 2 ** min(failures, 10)))
        self._batch = []
