"""The guard, with real processes: nothing of a program outlives its worker."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobworker.providers import guard
from tests.processes import sleeping
from tests.waiting import wait_until

pytestmark = pytest.mark.once

# A worker that does nothing but hold a program under its guard, and tells the pids.
WORKER = textwrap.dedent(
    """
    import os, subprocess, sys, time
    lifeline, mine = os.pipe()
    report, told = os.pipe()
    output, out = os.pipe()
    fds = (lifeline, told, output)
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", "-E", sys.argv[1], *map(str, fds), *sys.argv[2:]],
        stdout=out, stderr=out, pass_fds=fds, start_new_session=True,
    )
    os.close(out)
    print(guard.pid, os.read(report, 100).decode(), flush=True)
    time.sleep(600)
    """
)


class Held:
    """A program under a guard under a worker process."""

    def __init__(self, folder: Path, *argv: str) -> None:
        self.worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, guard.__file__, str(folder), *argv],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.worker.stdout
        self.guard, self.pid = map(int, self.worker.stdout.readline().split())

    def group(self) -> list[int]:
        found = []
        for process in psutil.process_iter(["status"]):
            try:
                if os.getpgid(process.pid) == self.pid and process.info["status"] != (
                    psutil.STATUS_ZOMBIE
                ):
                    found.append(process.pid)
            except ProcessLookupError:
                continue
        return found

    def end(self) -> None:
        self.worker.kill()
        self.worker.wait()
        assert self.worker.stdout
        self.worker.stdout.close()


@pytest.fixture
def hold(tmp_path: Path) -> Any:
    held: list[Held] = []

    def begin(*argv: str) -> Held:
        held.append(Held(tmp_path / "temporary", *argv))
        return held[-1]

    yield begin
    for each in held:
        each.end()


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def test_nothing_is_left_when_the_worker_is_killed(hold: Any, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    held = hold(*shell("sleep 500 & sleep 500 & wait"))
    wait_until(lambda: len(held.group()) == 3, what="the shell and its children")

    held.worker.kill()

    wait_until(lambda: not held.group(), within=15, what="the end of the group")
    wait_until(lambda: not psutil.pid_exists(held.guard), what="the end of the guard")
    assert not temporary.exists()


def test_a_worker_that_is_gone_before_it_was_told_the_pid_leaves_nothing(
    tmp_path: Path,
) -> None:
    """Found by killing workers 200 times: some died between the start and the answer."""
    seconds = f"8{os.getpid()}"
    lifeline, mine = os.pipe()
    report, told = os.pipe()
    output, out = os.pipe()
    fds = (lifeline, told, output)
    argv = [*map(str, fds), str(tmp_path / "temporary"), "/bin/sleep", seconds]
    os.close(report)
    os.close(mine)
    began = subprocess.Popen(
        [sys.executable, "-I", "-S", "-E", guard.__file__, *argv],
        stdout=out,
        stderr=out,
        pass_fds=fds,
        start_new_session=True,
    )
    assert began.wait(guard.GRACE + 5) == 128 + signal.SIGINT
    assert sleeping(seconds) == []
    for fd in (*fds, out):
        os.close(fd)


def test_a_program_told_to_stop_can_say_so_though_nobody_reads_it(
    hold: Any, tmp_path: Path
) -> None:
    """A closed pipe would kill it by SIGPIPE before it has saved anything."""
    saved = tmp_path / "saved"
    script = f"trap 'seq 1 100000; echo done > {saved}; exit 1' INT; echo up; while :; do sleep 0.1; done"
    held = hold(*shell(script))
    wait_until(lambda: held.group(), what="the program")

    held.worker.kill()

    wait_until(saved.exists, within=9, what="what the program saves when told to stop")
    wait_until(lambda: not held.group(), what="its end")


def test_what_ignores_the_interrupt_is_killed(hold: Any) -> None:
    held = hold(*shell("trap '' INT TERM; while :; do sleep 0.1; done"))
    wait_until(lambda: held.group(), what="the program")

    held.worker.kill()

    wait_until(
        lambda: not held.group(), within=guard.GRACE + 5, what="the end of the group"
    )


def direct(*argv: str) -> tuple[int, str]:
    """Run a guard to its end: its code and its report."""
    lifeline, mine = os.pipe()
    report, told = os.pipe()
    output, out = os.pipe()
    fds = (lifeline, told, output)
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-E",
                guard.__file__,
                *map(str, fds),
                "/nowhere",
                *argv,
            ],
            stdout=out,
            stderr=out,
            pass_fds=fds,
            start_new_session=True,
            timeout=30,
            check=False,
        )
        return done.returncode, os.read(report, 1000).decode()
    finally:
        for fd in (*fds, mine, report, out):
            os.close(fd)


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)]
)
def test_the_exit_code_is_the_programs_own(script: str, code: int) -> None:
    assert direct(*shell(script))[0] == code


def test_what_a_program_leaves_behind_in_its_group_is_killed() -> None:
    code, pid = direct(*shell("sleep 500 & exit 0"))

    assert code == 0

    def left() -> list[int]:
        found = []
        for process in psutil.process_iter():
            try:
                if os.getpgid(process.pid) == int(pid):
                    found.append(process.pid)
            except ProcessLookupError:
                continue
        return found

    wait_until(lambda: not left(), what="the end of what it left")


def test_a_program_that_cannot_be_started_is_told_of() -> None:
    code, said = direct("/nowhere/at-all")

    assert (code, said) == (guard.NOT_STARTED, "No such file or directory")


def test_signals_that_the_worker_ignores_reach_the_program() -> None:
    """A shell starts what runs in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, _ = direct(*shell("kill -INT $$; echo survived"))
    finally:
        signal.signal(signal.SIGINT, before)

    assert code == 128 + signal.SIGINT
