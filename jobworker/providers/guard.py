"""guard: keeps one external program, so that nothing of it outlives its worker.

A script of its own: `python -I -S -E guard.py LIFELINE REPORT OUTPUT FOLDER PROGRAM ARGUMENT...`,
without Django, so that it starts quickly and cannot fail by our code. It runs in a
session of its own; the program in a process group of its own inside it, so that a
signal for the group never meets the guard. Three pipes, by their numbers:

    LIFELINE  read: a byte is the number of a signal for the group; end of file says
              that the worker is gone: SIGINT, and SIGKILL `GRACE` seconds later
    REPORT    written once: the program's pid, or why it could not be started
    OUTPUT    the reading end of the program's output. The guard only holds it, and
              empties it once the worker is gone: a program that is told to stop and
              says so into a closed pipe would be killed by that (SIGPIPE)

FOLDER is the program's own for temporary files; it is removed in the end.

The guard signals, and nobody else: it is the parent, so the number cannot have been
given to somebody else's process meanwhile. Ends with the program's exit code, or 128
plus the signal that ended it, once nothing of the group is left.
"""

import os
import select
import shutil
import signal
import sys
import time

GRACE = 10.0  # seconds from SIGINT to SIGKILL when the worker is gone
DRAINED = 65_536  # bytes at once
NOT_STARTED = 127
# What Python, or a shell that started the worker in the background, may have ignored.
RESTORED = [
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGCHLD,
    signal.SIGXFSZ,
]


def main(lifeline: int, report: int, output: int, argv: list[str]) -> int:
    """Run the program and wait for its end."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    for fd in (lifeline, report, output):
        os.set_inheritable(fd, False)
    try:
        pid = os.posix_spawn(
            argv[0],
            argv,
            os.environ,
            setpgroup=0,
            setsigmask=[],
            setsigdef=RESTORED,
        )
    except OSError as problem:
        _tell(report, (problem.strerror or str(problem)).encode())
        return NOT_STARTED
    try:
        _tell(report, b"%d" % pid)
        os.close(report)
        # The writing end of the output belongs to the program alone: its end is its end.
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        _watch(pid, lifeline=lifeline, output=output, woken=woken)
    finally:
        # Whatever failed here, nothing of the program stays behind. It is not reaped,
        # so the number of the group is still ours.
        _signal(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _watch(pid: int, *, lifeline: int, output: int, woken: int) -> None:
    """Return when the program has ended; it is not reaped yet."""
    watched, kill_at, interrupted = [woken, lifeline], None, False
    while not _ended(pid):
        left = None if kill_at is None else max(0.0, kill_at - time.monotonic())
        for fd in select.select(watched, [], [], left)[0]:
            said = os.read(fd, DRAINED)
            if fd == lifeline:
                for number in said:
                    _signal(pid, number)
                    interrupted = True
            if said or fd == woken:
                continue
            watched.remove(fd)  # its other end is closed
            if fd == lifeline:
                if not interrupted:  # a second one makes Terraform drop what it holds
                    _signal(pid, signal.SIGINT)
                kill_at = time.monotonic() + GRACE
                watched.append(output)
        if kill_at is not None and time.monotonic() >= kill_at:
            _signal(pid, signal.SIGKILL)
            kill_at = time.monotonic() + GRACE


def _tell(report: int, text: bytes) -> None:
    """Tell the worker. It may be gone already: then nobody reads, and the lifeline says so."""
    try:
        os.write(report, text)
    except BrokenPipeError:
        return


def _ended(pid: int) -> bool:
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, options) is not None


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return  # it has just ended, or became somebody else's


if __name__ == "__main__":
    code = main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[5:])
    shutil.rmtree(sys.argv[4], ignore_errors=True)
    os._exit(code if code >= 0 else 128 - code)
