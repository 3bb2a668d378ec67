"""supervise: run the children of `start`, restart those that die, stop them in order.

What must stay true: a child that was told to drain is told so once, by us alone (each
is in a process group of its own, so that Ctrl-C in a terminal reaches only us); the
web process is stopped last; nobody outlives us, not even when we are killed; no child
stays a zombie, ours or adopted. The children's output goes where ours goes, untouched.
"""

import ctypes
import logging
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from project.configuration import EXIT_CONFIGURATION
from project.modes import Process

logger = logging.getLogger(__name__)

FIRST_BACK_OFF = 1.0  # seconds
LONGEST_BACK_OFF = 30.0  # seconds
HEALTHY = 60.0  # seconds; who lived this long starts again with the first back-off
MARGIN = 10.0  # seconds beyond the drain; then a child is killed
HURRY = 0.5  # seconds beyond the drain; then the web process waits for no request
AT_ONCE = 3.0  # seconds that children have after a second signal
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Child:
    """A process that is kept running."""

    def __init__(
        self, process: Process, *, environment: Mapping[str, str], folder: Path
    ) -> None:
        self.process = process
        self.environment = environment
        self.folder = folder
        self.popen: subprocess.Popen[bytes] | None = None
        self.started = 0.0  # monotonic
        self.start_at = 0.0  # monotonic; when it is due to be started
        self.back_off = FIRST_BACK_OFF
        self.killed = False  # by us, since it did not end in time

    @property
    def runs(self) -> bool:
        """Whether there is a process."""
        return self.popen is not None

    def start(self) -> None:
        """Start it."""
        self.started = time.monotonic()
        self.popen = subprocess.Popen(  # noqa: S603 - the table in modes.py
            self.process.command,
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=_drain_when_parent_dies,  # safe: this process has one thread
        )
        logger.info("started process=%s pid=%s", self.process.name, self.popen.pid)

    def send(self, number: signal.Signals) -> None:
        """Signal it, if it runs."""
        if self.popen is not None:
            with suppress(ProcessLookupError):
                os.kill(self.popen.pid, number)

    def ended(self, status: int) -> int:
        """Take note of its end; return its exit code (negative: by a signal)."""
        code = os.waitstatus_to_exitcode(status)
        if self.popen is not None:
            self.popen.returncode = code  # else it would be waited for again
        self.popen = None
        if time.monotonic() - self.started >= HEALTHY:
            self.back_off = FIRST_BACK_OFF
        return code

    def postpone(self) -> float:
        """Be due again after the back-off; return its seconds. The next one is longer."""
        seconds = self.back_off
        self.start_at = time.monotonic() + seconds
        self.back_off = min(seconds * 2, LONGEST_BACK_OFF)
        return seconds


class Supervisor:
    """All children, from the first start to the last exit code."""

    def __init__(
        self,
        processes: Sequence[Process],
        *,
        environment: Mapping[str, str],
        folder: Path,
        drain: float,  # seconds
        on_drain: Callable[[], None] = lambda: None,
    ) -> None:
        self.children = [
            Child(p, environment=environment, folder=folder) for p in processes
        ]
        self.drain = drain
        self.on_drain = on_drain
        self.exit_code = 0
        self.signals = 0  # to stop, so far
        self.stopping = False
        self._last_told = self._last_hurried = False
        self.hurry_at = 0.0  # monotonic
        self.kill_at: float | None = None  # monotonic
        self._wake, self._woken = socket.socketpair()

    def run(self) -> int:
        """Keep the children running until told to stop; return the exit code."""
        self._install_signals()
        while not (self.stopping and not any(child.runs for child in self.children)):
            self._start_due()
            self._kill_overdue()
            self._sleep()
            self._reap()
            if self.signals and not self.stopping:
                self._begin_drain()
            self._stop_last()
        logger.info("stopped exit_code=%s", self.exit_code)
        return self.exit_code

    def _install_signals(self) -> None:
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._told_to_stop)
        signal.signal(signal.SIGINT, self._told_to_stop)
        signal.signal(signal.SIGUSR1, self._pass_on)

    def _told_to_stop(self, number: int, _: object) -> None:
        self.signals += 1
        if self.signals > 1:  # drain no longer
            self.exit_code = self.exit_code or 128 + number
            self.kill_at = time.monotonic() + AT_ONCE
            for child in self.children:
                child.send(signal.SIGTERM)

    def _pass_on(self, number: int, _: object) -> None:
        """SIGUSR1: the stacks of the loops go to the log."""
        for child in self.children:
            if not child.process.last:
                child.send(signal.SIGUSR1)

    def _begin_drain(self) -> None:
        logger.info(
            "stopping: workers finish what they have begun, for at most %.0f s",
            self.drain,
        )
        self.stopping = True
        self.hurry_at = time.monotonic() + self.drain + HURRY
        self.kill_at = self.kill_at or time.monotonic() + self.drain + MARGIN
        for child in self.children:
            if not child.process.last:
                child.send(signal.SIGTERM)
        try:
            self.on_drain()
        except OSError as problem:
            logger.warning("the probes do not learn of the drain: %s", problem)

    def _stop_last(self) -> None:
        """Stop the web process once nobody else runs; requests have what is left of the drain."""
        others = any(child.runs for child in self.children if not child.process.last)
        if self.stopping and not others and not self._last_told:
            self._last_told = True
            for child in self.children:
                child.send(signal.SIGTERM)
        if (
            self._last_told
            and not self._last_hurried
            and time.monotonic() >= self.hurry_at
        ):
            self._last_hurried = True
            for child in self.children:
                child.send(signal.SIGQUIT)  # gunicorn's quick shutdown

    def _start_due(self) -> None:
        for child in self.children:
            if (
                not child.runs
                and not self.signals
                and child.start_at <= time.monotonic()
            ):
                self._start(child)

    def _start(self, child: Child) -> None:
        try:
            child.start()
        # Too many processes, no memory: both pass, and the others run.
        except (OSError, subprocess.SubprocessError) as problem:
            logger.error(
                "process=%s could not be started: %s; tried again in %.0f s",
                child.process.name,
                problem,
                child.postpone(),
            )

    def _kill_overdue(self) -> None:
        if self.kill_at is None or time.monotonic() < self.kill_at:
            return
        for child in self.children:
            if child.runs and not child.killed:
                logger.error(
                    "process=%s did not end in time: killed", child.process.name
                )
                child.killed = True
                child.send(signal.SIGKILL)
                self.exit_code = self.exit_code or 1

    def _sleep(self) -> None:
        """Until a signal, or the next thing that is due."""
        due = [c.start_at for c in self.children if not c.runs and not self.stopping]
        if self.kill_at is not None:
            due.append(self.kill_at)
        if self._last_told and not self._last_hurried:
            due.append(self.hurry_at)
        timeout = max(0.05, min(due) - time.monotonic()) if due else None
        select.select([self._wake], [], [], timeout)
        with suppress(BlockingIOError):
            while self._wake.recv(4096):
                pass

    def _reap(self) -> None:
        """Collect whoever ended, orphans that we were given included."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self.children:
                if child.popen is not None and child.popen.pid == pid:
                    self._ended(child, status)

    def _ended(self, child: Child, status: int) -> None:
        code = child.ended(status)
        words = _words(code)
        if self.signals:
            logger.info("process=%s ended: %s", child.process.name, words)
        elif code == EXIT_CONFIGURATION:
            logger.error(
                "process=%s ended: %s; its line above says what to correct",
                child.process.name,
                words,
            )
            self.exit_code = EXIT_CONFIGURATION
            self.signals += 1
        else:
            logger.error(
                "process=%s ended: %s; started again in %.0f s",
                child.process.name,
                words,
                child.postpone(),
            )


def _words(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _drain_when_parent_dies() -> None:
    """In the child, before its program: SIGTERM if `start` is gone without a word."""
    with suppress(OSError, AttributeError):  # not every system has it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
