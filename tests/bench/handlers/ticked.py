"""ticked: append one byte, as every system of the comparison does."""

from benchlib import tick

from workqueue.context import Context, Outcome


def run(ctx: Context) -> Outcome:
    """Append it."""
    tick()
    return Outcome(seen=1)
