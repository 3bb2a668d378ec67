"""As act_light, and it can follow what a broken attempt began."""

from typing import Any

from jobworker.context import JobContext
from tests.jobs.act_light import Params, lock, run, subject
from workqueue.context import Outcome

__all__ = ["Params", "follow", "lock", "run", "subject"]


def follow(ctx: JobContext, params: Params, ref: dict[str, Any]) -> Outcome:
    ctx.log(f"following {ref['what']}")
    return Outcome(seen=1, summary=f"{ref['what']} has ended; nothing was started")
