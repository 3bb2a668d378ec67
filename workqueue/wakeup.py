"""wakeup: tell the other processes that there is work. A hint; polling is the truth.

`notify()` only flags a thread, which sends at most one notification every 10 ms on a
connection of its own. In the caller's transaction NOTIFY would take a lock that all
commits of the server queue for: it cost 60 % of them at 16 clients. `Listener` waits on
what `workqueue.sources` offers and calls back.
"""

import atexit
import logging
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from django.conf import settings
from django.db import transaction

from workqueue import connections, sources, sql
from workqueue.sources import Source

logger = logging.getLogger(__name__)

CHANNEL = "millrace"
LEAST_GAP = 0.01  # seconds between two notifications of a process
# A connection that is lost is made again at once if it had been good for STEADY, else
# after a wait that doubles: neither a storm of terminations nor an outage makes it spin.
STEADY = 5.0  # seconds
SHORTEST_WAIT = 0.1  # seconds
LONGEST_WAIT = 1.0  # seconds


def on_commit_notify() -> None:
    """Notify once the caller's transaction has committed."""
    transaction.on_commit(notify)


def notify(channel: str = CHANNEL) -> None:
    """Wake those who wait for work. Returns at once. Call after the commit.

    `channel`: of those who listen there only; where there is no LISTEN all are woken.
    """
    if sources.by_database() or settings.WAKE_SOCKET:
        _notifier.flag(channel)


def flush(timeout: float = 0.5) -> None:
    """Wait until what was flagged has been sent; a short-lived process's last act."""
    _notifier.flush(timeout)


class Notifier:
    """The thread that sends. Started by the first flag, never at import."""

    def __init__(self) -> None:
        """Nothing is flagged, nothing runs."""
        self._lock = threading.Lock()
        self._flagged = threading.Event()
        self._channels: set[str] = set()
        self._sent = threading.Event()
        self._sent.set()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._failing = False

    def flag(self, channel: str = CHANNEL) -> None:
        """Ask for a notification."""
        self._sent.clear()
        self._channels.add(channel)
        self._flagged.set()
        if self._thread is None or not self._thread.is_alive():
            with self._lock:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(
                        target=self._run, name="notifier", daemon=True
                    )
                    self._thread.start()
                    atexit.register(self.flush, 0.5)

    def flush(self, timeout: float) -> None:
        """Wait until nothing is flagged."""
        self._sent.wait(timeout)

    def _run(self) -> None:
        while True:
            self._flagged.wait()
            self._flagged.clear()
            self._send()
            if not self._flagged.is_set():
                self._sent.set()
            time.sleep(LEAST_GAP)

    def _send(self) -> None:
        """Once more on a new connection where the old one is lost; then let it be."""
        for last in (False, True):
            try:
                if sources.by_database():
                    self._send_by_database()
                else:
                    sources.send_datagrams(settings.WAKE_SOCKET)
            except Exception as problem:
                self._drop()
                if last and not self._failing:
                    logger.warning("cannot wake others, they poll: %s", _line(problem))
                    self._failing = True
            else:
                self._failing = False
                return

    def _send_by_database(self) -> None:
        while self._channels:
            channel = self._channels.pop()
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connections.plain("notifier")
                self._connection.execute(sql.NOTIFY, {"channel": channel})
            except Exception:
                self._channels.add(channel)  # once more on a new connection
                raise

    def _drop(self) -> None:
        with suppress(Exception):
            if self._connection is not None:
                self._connection.close()
        self._connection = None


class Listener:
    """Calls `wake` when another process, or this one, has notified.

    Also once after each time the connection was made again: something may have been
    missed. Lost connections are logged, made again with a delay that grows, and leave
    nothing behind.
    """

    def __init__(self, wake: Callable[[], None], channel: str = CHANNEL) -> None:
        """`wake` is called in the listener's thread and must return at once."""
        self._wake = wake
        self._channel = channel
        self._stopping = False
        self._healthy = False
        self._lost_at: float | None = None  # time.monotonic()
        self._stop_read, self._stop_write = -1, -1
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to listen, where there is something to listen to."""
        if not (found := sources.present(self._channel)):
            return
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(
            target=self._run, args=(found,), name="listener", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread and give back what it held."""
        if self._thread is None:
            return
        self._stopping = True
        os.write(self._stop_write, b"x")
        self._thread.join()
        os.close(self._stop_read)
        os.close(self._stop_write)
        self._thread = None

    def healthy(self) -> bool:
        """Whether wake-ups arrive at present; polling goes on either way."""
        return self._healthy

    def _run(self, found: list[Source]) -> None:
        wait = 0.0
        while not self._pause(wait):
            began = time.monotonic()
            try:
                for source in found:
                    source.open()
                self._found()
                self._follow(found)
            except Exception as problem:
                self._lost(problem)
            finally:
                for source in found:
                    with suppress(Exception):
                        source.close()
            was_good = time.monotonic() - began > STEADY
            wait = 0.0 if was_good else min(LONGEST_WAIT, max(SHORTEST_WAIT, wait * 2))
        self._healthy = False

    def _follow(self, found: list[Source]) -> None:
        """Wake until told to stop. Raises when a source is lost."""
        poll = select.poll()
        descriptors = [self._stop_read, *(source.descriptor() for source in found)]
        for descriptor in descriptors:
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        looks = [source.every * 1000 for source in found if source.every]
        while not self._stopping:
            poll.poll(min(looks, default=None))
            # All are asked, since asking also takes away what has arrived.
            heard = [source.heard() for source in found]
            if any(heard):
                self._wake()

    def _pause(self, seconds: float) -> bool:
        """Wait; True: it is time to stop."""
        if seconds and not self._stopping:
            poll = select.poll()
            poll.register(self._stop_read, select.POLLIN)
            poll.poll(seconds * 1000)
        return self._stopping

    def _found(self) -> None:
        if self._lost_at is not None:
            logger.info("wake-up is back after=%.1fs", time.monotonic() - self._lost_at)
        self._healthy, self._lost_at = True, None
        self._wake()

    def _lost(self, problem: Exception) -> None:
        if self._lost_at is None:
            logger.warning("wake-up lost, polling goes on: %s", _line(problem))
            self._lost_at = time.monotonic()
        self._healthy = False


def _line(problem: Exception) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]


_notifier = Notifier()
_parents: list[Notifier] = []  # keeps what must not be finalised in a child


def _begin_anew() -> None:
    """In a child just forked: the thread and the connection are the parent's."""
    global _notifier
    _parents.append(_notifier)
    _notifier = Notifier()


os.register_at_fork(after_in_child=_begin_anew)
