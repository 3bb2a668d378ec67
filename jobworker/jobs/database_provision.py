"""database_provision: make a database, or change it to what is asked for now.

Outside: what the module makes, by Terraform. A second run changes only what differs;
two at once are kept apart by the job's lock and the state's. The password is made up
here, once, and kept encrypted: no parameter carries it.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from jobworker.context import JobContext
from jobworker.params import param
from jobworker.providers import follow as following
from jobworker.providers import given, provision
from workqueue.context import Outcome

KIND = "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """What is asked for."""

    name: str = given.name("Name of the database, the tenant's own.")
    engine: str = param(
        "Which server.", default="postgresql", choices=("postgresql", "mysql")
    )
    size_gb: int = param("Its disk, in GB.", default=10, low=1, high=65_536)
    module: str = given.module(KIND)
    variables: str = given.variables("name", "engine", "size_gb", "password")
    ttl_hours: int = given.ttl_hours()
    protected: bool = given.protected()


def subject(params: Params) -> str:
    """What it works on."""
    return f"deployment {params.name}"


def lock(params: Params) -> str:
    """One job at a time per deployment."""
    return given.lock(KIND, params.name)


def run(ctx: JobContext, params: Params) -> Outcome:
    """Plan, apply, keep the outputs."""
    variables = {
        "name": params.name,
        "engine": params.engine,
        "size_gb": params.size_gb,
        **given.parsed(params.variables),
    }
    return provision.provision(
        ctx,
        kind=KIND,
        name=params.name,
        module=params.module,
        variables=variables,
        made_up=("password",),
        ttl_hours=params.ttl_hours,
        protected=params.protected,
    )


def follow(ctx: JobContext, params: Params, ref: dict[str, Any]) -> Outcome:
    """Take over what a broken job left; start nothing."""
    return following.follow(ctx, kind=KIND, name=params.name, ref=ref)


def broken_off(job_id: UUID, why: str) -> None:
    """What it was working on failed."""
    provision.broken_off(job_id, why)
