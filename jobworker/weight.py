"""weight: how many jobs of this process are awake, and no more than the pool serves.

A job awake needs connections; one asleep in `ctx.sleep` holds none. Who wakes up waits
for weight before who is claimed anew, since claiming looks at `taken`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connections


class Weight:
    """The weights of one process."""

    def __init__(self, *, freed: Callable[[], None] = lambda: None) -> None:
        """Nobody is awake; `allow` says how many may be. `freed`: called when there is room again."""
        self._freed = freed
        self._changed = threading.Condition()
        self.usable = 1
        self.awake = 0
        self.waking: list[UUID] = []  # who has slept and waits for weight: claims

    def allow(self, usable: int) -> None:
        """So many may be awake. Fewer than are: nobody is stopped, nobody new begins.

        At least one: where nobody is to begin, who sleeps must still come to its end.
        """
        with self._changed:
            self.usable = max(1, usable)
            self._changed.notify_all()

    def taken(self) -> int:
        """How many are awake, or about to be."""
        with self._changed:
            return self.awake + len(self.waking)

    def take(self) -> None:
        """Begin a job."""
        with self._changed:
            self.awake += 1

    def put(self) -> None:
        """End a job."""
        with self._changed:
            self.awake -= 1
            self._changed.notify_all()
        self._freed()

    def nudge(self) -> None:
        """Let those that wait for weight look whether they are to stop."""
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def set_down(self, claim: UUID, stop_waiting: Callable[[], bool]) -> Iterator[None]:
        """Sleep inside: the calling thread's connections go back, and so does its weight.

        Leaving waits for weight, unless `stop_waiting()`: a job that is to stop must not
        wait for its turn to do so.
        """
        connections.close_all()
        self.put()
        try:
            yield
        finally:
            with self._changed:
                self.waking.append(claim)
                self._changed.wait_for(
                    lambda: self.awake < self.usable or stop_waiting()
                )
                self.waking.remove(claim)
                self.awake += 1
