"""stamp: say when it started, on the clock that all processes of a machine share."""

import time
from pathlib import Path

from workqueue.context import Context, Outcome


def run(ctx: Context) -> Outcome:
    """Append "<name> <monotonic nanoseconds>" to a file; the dedup key is "<file> <name>"."""
    moment = time.monotonic_ns()
    file, _, name = ctx.dedup_key.partition(" ")
    with Path(file).open("a") as stamps:
        stamps.write(f"{name} {moment}\n")
    return Outcome(seen=1)
