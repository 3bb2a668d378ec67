"""deployments.sweep: submit the job that ends deployments whose time is over."""

import logging

from jobworker.exceptions import Locked
from jobworker.submit import submit
from workqueue import tenancy
from workqueue.context import Context, Outcome

logger = logging.getLogger(__name__)

JOB = "autodelete_sweep"


def run(ctx: Context) -> Outcome:
    """Submit one, unless the one before is not finished."""
    try:
        job = submit(JOB, {}, tenant=tenancy.platform(), who=ctx.key, origin="engine")
    except Locked as held:
        logger.warning("%s", held)
        return Outcome(skipped=1, summary="the sweep before is not finished")
    return Outcome(seen=1, changed=1, summary=f"submitted job {job.id}")
