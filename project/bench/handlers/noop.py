"""noop: write one line and return."""

import logging

from workqueue.context import Context, Outcome

logger = logging.getLogger(__name__)


def run(ctx: Context) -> Outcome:
    """Nothing but the bookkeeping around it."""
    logger.info("nothing to do for %s", ctx.tenant)
    return Outcome(seen=1)
