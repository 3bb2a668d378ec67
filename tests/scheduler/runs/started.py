"""started: a handler that does nothing, also at start."""

from workqueue.context import Context, Outcome


def run(ctx: Context) -> Outcome:
    return Outcome()
