"""mark: say when it started, on the clock that all processes of a machine share."""

import time
from dataclasses import dataclass
from pathlib import Path

from jobworker.context import JobContext
from jobworker.params import param
from workqueue.context import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Where to."""

    file: str = param("File that is appended to.")
    name: str = param("What to write before the time.")


def run(_: JobContext, params: Params) -> Outcome:
    """Append "<name> <monotonic nanoseconds>"."""
    moment = time.monotonic_ns()
    with Path(params.file).open("a") as marks:
        marks.write(f"{params.name} {moment}\n")
    return Outcome(seen=1)
