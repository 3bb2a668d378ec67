"""ticking: a run of a few lines and a few milliseconds."""

import logging
import time

from workqueue.context import Context, Outcome

logger = logging.getLogger(__name__)


def run(ctx: Context) -> Outcome:
    """Long enough to be met by a kill now and then."""
    for n in range(3):
        logger.info("step %s of %s", n + 1, ctx.tenant)
        time.sleep(0.02)
    return Outcome(seen=3, changed=3)
