"""grow: a parameter of every kind."""

from dataclasses import dataclass
from typing import Any

from jobworker.params import param
from workqueue.context import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    name: str = param(
        "Name of the cluster.", pattern=r"[a-z][a-z0-9-]*", says="lower-case letters"
    )
    nodes: int = param("Machines in it.", default=2, low=1, high=100)
    size: str = param("How large each is.", default="small", choices=("small", "large"))
    keep: bool = param("Keep it when it is overdue.", default=False)
    admin_password: str = param("Of its administrator.", default="")


def subject(params: Params) -> str:
    return f"cluster {params.name}"


def lock(params: Params) -> str:
    return f"cluster:{params.name}"


def run(ctx: Any, params: Params) -> Outcome:
    return Outcome()
