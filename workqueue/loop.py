"""The shared skeleton of a process: signals, an interruptible sleep, a drain.

Subclasses give `poll`, which does one pass and says when the next is due. Nothing
that goes wrong in a pass ends the process: it is logged in one line and tried
again, at most once a second while the database is away.
"""

import faulthandler
import logging
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from django.db import DatabaseError, InterfaceError, close_old_connections

from workqueue import connections, pooler, schema

logger = logging.getLogger(__name__)

EXIT_CONFIGURATION = 78  # sysexits.h: EX_CONFIG; the supervisor starts nothing again
LONGEST_SLEEP = 3600.0  # seconds; threading refuses absurd ones
LONGEST_BACKOFF = 15.0  # seconds between passes that fail


class Loop:
    """A process that polls until it is told to stop."""

    name = "loop"

    def __init__(self) -> None:
        """Nothing starts here: `run` does."""
        self.stopping = threading.Event()  # no new work; finish what there is
        self.exit_code = 0
        self._woken = threading.Event()
        self._failures = 0

    def prepare(self) -> None:
        """Start what the loop needs. Tried again while the database is away, so it asks that first."""

    def poll(self) -> float:
        """Do one pass; return the seconds until the next."""
        raise NotImplementedError

    def drain(self) -> None:
        """Finish, or give up in order, what is in hand."""

    def run(self) -> int:
        """Poll until SIGTERM or SIGINT, drain, return the exit code."""
        self._install_signals()
        if not schema.wait(stop=self.stopping):
            return self.exit_code
        if wrong := pooler.trouble():
            logger.error("not started: %s", wrong)
            return EXIT_CONFIGURATION
        if not self._prepared():
            return self.exit_code
        while not self.stopping.is_set():
            self._sleep(self._pass(self.poll))
        self.drain()
        return self.exit_code

    def wake(self) -> None:
        """Poll now. From any thread, as often as one likes."""
        if not self._woken.is_set():
            self._woken.set()

    def stop(self, *, exit_code: int = 0) -> None:
        """Begin the drain."""
        self.exit_code = self.exit_code or exit_code
        self.stopping.set()
        self._woken.set()

    def _prepared(self) -> bool:
        """Prepare, however often it takes; False: told to stop before."""
        done: list[bool] = []

        def once() -> float:
            self.prepare()
            done.append(True)
            return 0.0

        while not done and not self.stopping.is_set():
            self._sleep(self._pass(once))
        return bool(done)

    def _sleep(self, seconds: float) -> None:
        self._woken.wait(min(max(seconds, 0.0), LONGEST_SLEEP))
        self._woken.clear()

    def _pass(self, do: Callable[[], float]) -> float:
        """One pass; what it raises becomes a delay that grows."""
        try:
            close_old_connections()
            delay = do()
        except (DatabaseError, InterfaceError) as problem:
            return self._failed("database", problem)
        except Exception as problem:
            logger.exception("pass failed process=%s", self.name)
            return self._failed("pass", problem)
        if self._failures:
            logger.info("recovered process=%s after=%s", self.name, self._failures)
        self._failures = 0
        return delay

    def _failed(self, what: str, problem: Exception) -> float:
        self._failures += 1
        delay = min(
            LONGEST_BACKOFF, 2.0 ** min(self._failures - 1, 6)
        ) * random.uniform(1, 1.2)  # noqa: S311
        text = " ".join(str(problem).split())[:300]
        logger.warning(
            "%s problem process=%s again_in=%.1fs: %s", what, self.name, delay, text
        )
        close_old_connections()
        return delay

    def _install_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # a test that runs the loop in a thread stops it by stop()
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        faulthandler.register(signal.SIGUSR1, all_threads=True)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.stopping.is_set():
            os._exit(128 + number)  # the second one: at once, whatever is in hand
        self.stop()


def leave(exit_code: int) -> NoReturn:
    """End this process after its drain.

    At once: all has been said and stored, and for Python to take a hundred thousand
    objects apart takes a second or two of a busy machine, out of the grace period.
    """
    connections.close_all()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
