"""Real processes of the project, as tests start them."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
MANAGE = [sys.executable, str(ROOT / "manage.py")]


def run_manage(
    arguments: Sequence[str], *, env: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its exit code is the caller's to judge."""
    return subprocess.run(
        [*MANAGE, *arguments],
        env=env,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def sleeping(seconds: str) -> list[psutil.Process]:
    """The programs `sleep SECONDS` that run now: what a test's jobs have started."""
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if (line := each.info["cmdline"] or [""])[0].endswith("sleep")
        and line[1:] == [seconds]
    ]


class Process:
    """A command that stays, in a session of its own, with its output in a file."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: dict[str, str],
        log: Path,
        cwd: Path = ROOT,
        program: Sequence[str] = MANAGE,
        **more: Any,
    ) -> None:
        """`more`: whatever subprocess.Popen takes."""
        self.log_file = log
        with log.open("wb") as out:
            self.popen = subprocess.Popen(
                [*program, *arguments],
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **more,
            )
        self.pid = self.popen.pid

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self.log_file.read_text(errors="replace")

    def says(self, text: str, *, within: float = 20) -> None:
        """Wait until `text` stands in its output. Fails when it ends before."""

        def said() -> bool:
            if text in self.log:
                return True
            assert self.popen.poll() is None, f"it ended, without {text!r}:\n{self.log}"
            return False

        try:
            wait_until(said, within=within, what=f"{text!r} in the output")
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{self.log}") from None

    def send(self, number: signal.Signals) -> None:
        """Signal the process, not its children."""
        self.popen.send_signal(number)

    def terminate(self) -> None:
        """SIGTERM: it drains."""
        self.send(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: it is gone without a word."""
        self.send(signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    def wait(self, *, within: float = 30) -> int:
        """Its exit code."""
        try:
            return self.popen.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"still running after {within} s:\n{self.log}"
            ) from None

    def end(self) -> None:
        """Kill it with everything it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait(10)
