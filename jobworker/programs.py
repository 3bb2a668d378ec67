"""programs: the external programs that run in this process, and the CPU they have used.

providers/process.py writes it; the node's report and the job's page read it, so that
"alive but silent" can be told from "stuck". CPU time is read from /proc; where there is
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
