"""talk: write so many lines, so many a second (0: as fast as it can)."""

import time
from dataclasses import dataclass

from jobworker.context import JobContext
from jobworker.params import param
from workqueue.context import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """How much."""

    lines: int = param("Lines in all.", low=1, high=10_000_000)
    per_second: int = param(
        "Lines a second; 0: no limit.", default=0, low=0, high=10_000_000
    )


def run(ctx: JobContext, params: Params) -> Outcome:
    """Write them, each with its own number."""
    began = time.monotonic()
    for number in range(1, params.lines + 1):
        ctx.log(f"line {number} of a program that says what it does at some length")
        if params.per_second:
            ahead = number / params.per_second - (time.monotonic() - began)
            if ahead > 0.001:
                time.sleep(ahead)
    return Outcome(changed=params.lines)
