"""cluster_provision: make a cluster, or change it to what is asked for now.

Outside: what the module makes, by Terraform. A second run changes only what differs;
two at once are kept apart by the job's lock and the state's.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from jobworker.context import JobContext
from jobworker.params import param
from jobworker.providers import follow as following
from jobworker.providers import given, provision
from workqueue.context import Outcome

KIND = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """What is asked for."""

    name: str = given.name("Name of the cluster, the tenant's own.")
    nodes: int = param("Machines in it.", default=2, low=1, high=100)
    module: str = given.module(KIND)
    variables: str = given.variables("name", "nodes")
    ttl_hours: int = given.ttl_hours()
    protected: bool = given.protected()


def subject(params: Params) -> str:
    """What it works on."""
    plural = "" if params.nodes == 1 else "s"
    return f"deployment {params.name}, {params.nodes} node{plural}"


def lock(params: Params) -> str:
    """One job at a time per deployment."""
    return given.lock(KIND, params.name)


def run(ctx: JobContext, params: Params) -> Outcome:
    """Plan, apply, keep the outputs."""
    variables = {"name": params.name, "nodes": params.nodes}
    return provision.provision(
        ctx,
        kind=KIND,
        name=params.name,
        module=params.module,
        variables={**variables, **given.parsed(params.variables)},
        ttl_hours=params.ttl_hours,
        protected=params.protected,
    )


def follow(ctx: JobContext, params: Params, ref: dict[str, Any]) -> Outcome:
    """Take over what a broken job left; start nothing."""
    return following.follow(ctx, kind=KIND, name=params.name, ref=ref)


def broken_off(job_id: UUID, why: str) -> None:
    """What it was working on failed."""
    provision.broken_off(job_id, why)
