"""modes: which processes `start` runs for FALCON_MODE, in the order they are started.

One more is a row here, a word in environment.EVERYWHERE, a service in compose.yaml and
a Deployment in deploy/kubernetes; tests/deploy names what was forgotten.
"""

import sys
from dataclasses import dataclass

MANAGE = (sys.executable, "manage.py")
SERVE = (
    sys.executable,
    "-m",
    "gunicorn",
    "-c",
    "python:project.gunicorn",
    "project.wsgi:application",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One kind of child."""

    name: str  # for the log; of those without a port also Node.Kind
    command: tuple[str, ...]
    last: bool = False  # stopped after all others: it answers probes while they drain


WEB = Process(name="web", command=SERVE, last=True)
SCHEDULER = Process(name="scheduler", command=(*MANAGE, "runscheduler"))
WORKER = Process(name="worker", command=(*MANAGE, "runworker"))
JOBWORKER = Process(name="jobworker", command=(*MANAGE, "runjobworker"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One value of FALCON_MODE."""

    processes: tuple[Process, ...]
    migrates: bool = False
    api: bool = False  # programs are served: /metrics
    admin: bool = False  # the admin's pages are served

    @property
    def serves(self) -> bool:
        """Whether it has a port."""
        return WEB in self.processes


MODES = {
    "all": Mode(
        processes=(WEB, SCHEDULER, WORKER, JOBWORKER),
        migrates=True,
        api=True,
        admin=True,
    ),
    "api": Mode(processes=(WEB, SCHEDULER), migrates=True, api=True),
    "web": Mode(processes=(WEB,), admin=True),
    "worker": Mode(processes=(WORKER,)),
    "jobworker": Mode(processes=(JOBWORKER,)),
}
