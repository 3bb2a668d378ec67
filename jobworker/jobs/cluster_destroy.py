"""cluster_destroy: take a cluster away.

Outside: what the module made, by Terraform. A second run finds nothing to do.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from jobworker.context import JobContext
from jobworker.providers import follow as following
from jobworker.providers import given, provision
from workqueue.context import Outcome
from workqueue.models import Tenant

KIND = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """What is to go."""

    name: str = given.name("Name of the cluster.")


def subject(params: Params) -> str:
    """What it works on."""
    return f"deployment {params.name}"


def lock(params: Params) -> str:
    """One job at a time per deployment."""
    return given.lock(KIND, params.name)


def refuse(params: Params, tenant: Tenant) -> dict[str, str]:
    """What is not there, a slip of the keyboard as a rule, is said at once."""
    return given.unknown(KIND, params.name, tenant)


def run(ctx: JobContext, params: Params) -> Outcome:
    """Plan its end, and apply that."""
    return provision.destroy(ctx, kind=KIND, name=params.name)


def follow(ctx: JobContext, params: Params, ref: dict[str, Any]) -> Outcome:
    """Take over what a broken job left; start nothing."""
    return following.follow(ctx, kind=KIND, name=params.name, ref=ref, gone=True)


def broken_off(job_id: UUID, why: str) -> None:
    """What it was working on failed."""
    provision.broken_off(job_id, why)
