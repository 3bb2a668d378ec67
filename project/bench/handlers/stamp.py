"""stamp: say when it started, on the clock that all processes of a machine share."""

import os
import time

from workqueue.context import Context, Outcome

_file: list[int] = []


def run(ctx: Context) -> Outcome:
    """Append "<dedup key> <monotonic nanoseconds>" to the file named by BENCH_STAMPS."""
    moment = time.monotonic_ns()
    if not _file:
        _file.append(
            os.open(os.environ["BENCH_STAMPS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        )
    os.write(_file[0], b"%s %d\n" % (ctx.dedup_key.encode(), moment))
    return Outcome(seen=1)
