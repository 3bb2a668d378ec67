"""broken: a handler whose probe fails."""

from datetime import datetime

from workqueue.context import Context, Outcome


def due(now: datetime) -> object:
    raise RuntimeError("the probe\x00 is broken")


def run(ctx: Context) -> Outcome:
    return Outcome()
