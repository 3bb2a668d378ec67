"""process: run an external program for a job, follow its output, stop it when told.

The program runs under guard.py, so nothing of it outlives this process, whatever
becomes of it. Its environment is made from scratch. No database connection is held
while it runs, and of its output never more than a line.

Told to stop (`ctx.stopping`): SIGINT to the whole group at once, SIGTERM after the
patience that the program deserves, SIGKILL ten seconds later, and SIGKILL at
`ctx.kill_at` in any case.
"""

import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.db import connections

from audit import clock
from jobworker import installed, programs
from jobworker.context import JobContext
from jobworker.exceptions import JobFailed
from jobworker.providers import guard
from jobworker.providers.lines import Lines

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.1  # seconds between two looks at `stopping` while nothing comes
CHUNK = 65_536  # bytes
KILL_AFTER = 10.0  # seconds from SIGTERM to SIGKILL
# After SIGKILL the guard only has to reap; a process that the kernel holds is left to it.
REAPED_WITHIN = 5.0  # seconds
VERSION_WITHIN = 30  # seconds
WORDS = {
    signal.SIGINT: "interrupted (SIGINT)",
    signal.SIGTERM: "ended (SIGTERM)",
    signal.SIGKILL: "killed (SIGKILL)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended."""

    code: int  # its exit code; 128 + n: signal n ended it
    told: (
        signal.Signals | None
    )  # the last signal that we sent; None: it ended by itself

    @property
    def words(self) -> str:
        """'was interrupted (SIGINT) and ended with exit code 1'."""
        end = f"ended with exit code {self.code}"
        if self.code > 128:
            end = f"was ended by signal {self.code - 128}"
        return f"was {WORDS[self.told]} and {end}" if self.told else end


def environment(*, home: Path, **more: str) -> dict[str, str]:
    """What a program is given: nothing of the worker's own but PATH."""
    path = os.pathsep.join(os.get_exec_path())
    return {
        "PATH": path,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        **more,
    }


def find(ctx: JobContext, program: str, *, tier: str) -> str:
    """The program's full path. Raises JobFailed where it is not installed."""
    found = shutil.which(program)
    if found is None:
        text = installed.sentence(program, where=ctx.node, tier=tier)
        raise JobFailed(text, code="program_missing")
    return os.path.abspath(found)


@cache
def version(path: str) -> str:
    """What the program says of its version: asked, and logged, once per process start."""
    try:
        asked = subprocess.run(  # noqa: S603 - the path is `find`'s
            [path, "version"],
            env=environment(home=Path(os.devnull), CHECKPOINT_DISABLE="1"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise JobFailed(
            f"{path} does not tell its version: {problem}", code="program_broken"
        ) from None
    said = asked.stdout.decode("utf-8", "replace").strip().partition("\n")[0]
    logger.info("program=%s version=%s", path, said or "(none told)")
    return said


def reference(
    *, what: str, program: str, pid: int, folder: Path, ended: str
) -> dict[str, Any]:
    """What is kept of a program that has just been started. `ended`: what it does, interrupted.

    Read when its worker no longer answers, and nobody knows whether that is dead or
    hangs: `then` has to be true of both.
    """
    host = socket.gethostname()
    return {
        "what": what,
        "program": program,
        "host": host,
        "workspace": str(folder),
        "pid": pid,
        "then": f"where its worker has ended, it was interrupted and {ended}; where its"
        f" worker only hangs, it may still run, as pid {pid} on {host}",
    }


def run_program(
    ctx: JobContext,
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    on_line: Callable[[str], None],
    patience_s: float,
    on_start: Callable[[int], None] = lambda _: None,
) -> Ended:
    """Run to the end; `argv[0]` is a full path. Lines come in the calling thread.

    `on_start` gets the pid; where it or `on_line` raises, the program is stopped first.
    """
    ctx.check_cancel()
    with _Guarded(argv, cwd=cwd, env=env) as guarded:
        pid = guarded.started()
        name = os.path.basename(argv[0])
        with programs.announced(claim_id=ctx.claim_id, program=name, pid=pid):
            on_start(pid)
            connections.close_all()
            lines = Lines(on_line)
            stop = _Stop(ctx, guarded, patience_s=patience_s)
            while guarded.read(lines) and stop.look():
                pass
            lines.end()
            return Ended(code=guarded.code(), told=stop.told)


class _Stop:
    """The signals, each in its time."""

    def __init__(
        self, ctx: JobContext, guarded: "_Guarded", *, patience_s: float
    ) -> None:
        self.told: signal.Signals | None = None
        self._ctx = ctx
        self._guarded = guarded
        self._patience = patience_s
        self._since = 0.0

    def look(self) -> bool:
        """Send what is due. False: it was killed and is not reaped: wait no longer."""
        if not self._ctx.stopping.is_set():
            return True
        now = clock.steady()
        if self.told is None:
            self._since = now
            self._send(signal.SIGINT)
        kill_at = min(self._since + self._patience + KILL_AFTER, self._ctx.kill_at)
        if now >= kill_at:
            self._send(signal.SIGKILL)
        elif now >= self._since + self._patience:
            self._send(signal.SIGTERM)
        return now < kill_at + REAPED_WITHIN

    def _send(self, number: signal.Signals) -> None:
        if self.told != number:
            self.told = number
            self._guarded.signal(number)


class _Guarded:
    """A program under its guard. Leaving the block ends both."""

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> None:
        self._ended = self._closed = False
        self._pid = 0
        self._program = argv[0]
        # Not in `cwd`: programs make sockets there, whose paths have at most 107 bytes.
        self._folder = tempfile.mkdtemp(prefix="job-")
        lifeline, self._lifeline = os.pipe()
        self._report, report = os.pipe()
        self._output, output = os.pipe()
        os.set_blocking(self._output, False)
        try:
            given = (lifeline, report, self._output)
            self._process = subprocess.Popen(  # noqa: S603 - argv is a job type's own
                [
                    sys.executable,
                    *("-I", "-S", "-E", guard.__file__),
                    *map(str, given),
                    self._folder,
                    *argv,
                ],
                cwd=cwd,
                env={**env, "TMPDIR": self._folder},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=given,
                start_new_session=True,
            )
        except BaseException:
            for fd in (self._lifeline, self._report, self._output):
                os.close(fd)
            raise
        finally:
            for fd in (lifeline, report, output):
                os.close(fd)

    def __enter__(self) -> "_Guarded":
        return self

    def __exit__(self, *_: object) -> None:
        """What still runs is told by the end of the lifeline, and waited for."""
        os.close(self._lifeline)
        try:
            self._process.wait(guard.GRACE + REAPED_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode < 0:  # somebody killed the guard
            if self._pid:
                with suppress(ProcessLookupError):
                    os.killpg(self._pid, signal.SIGKILL)
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._output)
        os.close(self._report)

    def started(self) -> int:
        """The program's pid. Raises JobFailed where it could not be started."""
        said = os.read(self._report, CHUNK).decode("utf-8", "replace")
        if said.isdigit():
            self._pid = int(said)
            return self._pid
        raise JobFailed(
            f"{self._program} could not be started: {said or 'its guard ended'}",
            code="program_broken",
        )

    def read(self, lines: Lines) -> bool:
        """Pass on what came, or wait a moment for it. False: it is all there was."""
        if self._closed:  # it ended, or goes on without a word
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK_EVERY)
                return False
            return True
        over = self._ended
        ready, _, _ = select.select([self._output], [], [], 0 if over else LOOK_EVERY)
        if ready and (chunk := os.read(self._output, CHUNK)):
            lines.feed(chunk)
        elif ready:
            self._closed = True
        elif over:
            return False
        else:
            # A daemon that it started may hold the pipe open: one more look, and enough.
            self._ended = self._process.poll() is not None
        return True

    def signal(self, number: signal.Signals) -> None:
        """Have the guard signal the group."""
        with suppress(BrokenPipeError):  # it has ended
            os.write(self._lifeline, bytes([number]))

    def code(self) -> int:
        """The exit code; -9 where it was killed and is not reaped yet."""
        found = self._process.poll()
        return -signal.SIGKILL if found is None else found
