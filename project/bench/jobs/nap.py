"""nap: wait for the outside."""

from dataclasses import dataclass

from jobworker.context import JobContext
from jobworker.params import param
from workqueue.context import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """How long."""

    seconds: float = param("Seconds.", low=0, high=3600)


def run(ctx: JobContext, params: Params) -> Outcome:
    """Sleep."""
    ctx.sleep(params.seconds)
    return Outcome(seen=1)
