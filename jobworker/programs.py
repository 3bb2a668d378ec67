"""programs: the external programs that run in this process, and the CPU they have used.

providers/process.py writes it; the node's report and the job's page read it, so that
"alive but silent" can be told from "stuck". Also whether one that another process of
this machine began is still there: its worker may only hang. CPU time is read from /proc; where there is
none it is None, which means: nobody knows.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

PROC = Path("/proc")

_lock = threading.Lock()
_running: dict[UUID, tuple[str, int]] = {}  # claim -> (program, pid of its group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An external program of a job, and all that it has started."""

    claim_id: UUID
    program: str  # "packer"
    pid: int  # also the number of its process group
    cpu_seconds: float | None  # of the whole group since its start; None: unknown


@contextmanager
def announced(*, claim_id: UUID, program: str, pid: int) -> Iterator[None]:
    """Name the program while it runs."""
    with _lock:
        _running[claim_id] = (program, pid)
    try:
        yield
    finally:
        with _lock:
            _running.pop(claim_id, None)


def running() -> list[Running]:
    """What runs now. One pass over /proc where anything does."""
    with _lock:
        found = dict(_running)
    used = _cpu_seconds({pid for _, pid in found.values()}) if found else {}
    return [
        Running(claim_id=claim, program=program, pid=pid, cpu_seconds=used.get(pid))
        for claim, (program, pid) in found.items()
    ]


def lives(*, pid: int, folder: Path) -> bool:
    """Whether the program that was begun in the folder as this pid still runs on this machine.

    The number alone may be another's by now, but nobody else works in a job's workspace.
    Where there is no /proc, whatever has the number counts.
    """
    try:
        where = os.readlink(PROC / str(pid) / "cwd")
    except PermissionError:
        return False  # somebody else's: those that we begin are ours to look at
    except OSError:
        return not PROC.is_dir() and _exists(pid)  # it has ended
    return Path(where.removesuffix(" (deleted)")) == folder.resolve()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _cpu_seconds(groups: set[int]) -> dict[int, float]:
    """Seconds of CPU per process group: its processes, and those that they waited for."""
    ticks: dict[int, int] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; what follows has no blanks in it.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        group = int(fields[2])
        if group in groups:
            ticks[group] = ticks.get(group, 0) + sum(map(int, fields[11:15]))
    return {group: used / os.sysconf("SC_CLK_TCK") for group, used in ticks.items()}
