"""instance.sum_up: sum up the runs of each minute and hour for the Metrics page."""

from audit import clock, sum_up
from workqueue.context import Context, Outcome

# Seconds for what was left behind, after an upgrade or a pause; the rest has the next minute.
AT_ONCE = 40.0


def run(ctx: Context) -> Outcome:
    """All minutes that are over. It counts no records, so its own runs are not kept for long."""
    until = clock.steady() + AT_ONCE

    def goes_on() -> bool:
        return not ctx.stopping() and clock.steady() < until

    minutes = sum_up.sum_up(ctx.now, goes_on=goes_on)
    return Outcome(summary=f"{minutes:,} minute{'' if minutes == 1 else 's'} summed up")
