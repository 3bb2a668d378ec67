"""plain: a handler that does nothing."""

from workqueue.context import Context, Outcome


def run(ctx: Context) -> Outcome:
    return Outcome()
