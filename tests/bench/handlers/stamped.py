"""stamped: write how long ago it was enqueued."""

from benchlib import stamp

from workqueue.context import Context, Outcome


def run(ctx: Context) -> Outcome:
    """Write it."""
    stamp(ctx.dedup_key)
    return Outcome(seen=1)
