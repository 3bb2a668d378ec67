"""The row type of dispatch.py, and the way from a type to its row and module.

Found through settings.JOBWORKER_TYPES, so that another project can bring job types of
its own. A module of jobworker/jobs has a frozen dataclass `Params` and
`run(ctx, params) -> Outcome`; where it makes sense also `subject(params) -> str`,
`lock(params) -> str`, `refuse(params, tenant) -> {parameter: sentence}`, asked when it is
submitted, `follow(ctx, params, ref) -> Outcome`, which Adopt runs, and
`broken_off(job_id, why)`, called in the transaction that ends a job otherwise than well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from jobworker.exceptions import UnknownType
from workqueue.models import Tenant

TIERS = ("heavy", "medium", "light")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobType:
    """A row of dispatch.py."""

    type: str  # = its module in jobworker/jobs: "packer_build"
    tier: str  # heavy | medium | light
    purpose: str  # one sentence
    time_limit: timedelta
    exclusive: str = ""  # group of which one job runs at a time; "": none
    programs: tuple[str, ...] = ()  # what must be on the worker's PATH
    # False: it works for all tenants. A handler submits it, for the platform; for another
    # tenant it is refused, and the form and the command's list leave it out.
    by_hand: bool = True


@cache
def types() -> dict[str, JobType]:
    """All job types, in the order of dispatch.py."""
    return {row.type: row for row in rows()}


def rows() -> tuple[JobType, ...]:
    """The rows as they stand; a check refuses two of one type."""
    found: tuple[JobType, ...] = import_string(settings.JOBWORKER_TYPES)
    return found


def row(type: str) -> JobType:
    """The row of a type. Raises UnknownType."""
    try:
        return types()[type]
    except KeyError:
        known = ", ".join(name for name, row in types().items() if row.by_hand)
        raise UnknownType(
            f"There is no job type {type!r}. There are {known}."
        ) from None


def module(type: str) -> Any:
    """The type's module, imported on first use. Raises UnknownType."""
    row(type)
    return import_module(f"{settings.JOBWORKER_JOBS_PACKAGE}.{type}")


def subject(type: str, params: Any) -> str:
    """What the job works on, as lists show it: "deployment demo"."""
    return _said(type, "subject", params)


def lock(type: str, params: Any) -> str:
    """What no second unfinished job of the tenant may work on; "": nothing."""
    return _said(type, "lock", params)


def refuse(type: str, params: Any, tenant: Tenant) -> dict[str, str]:
    """What of the parameters cannot be for this tenant as things stand: parameter -> sentence."""
    refuses = getattr(module(type), "refuse", None)
    return dict(refuses(params, tenant)) if refuses else {}


def follow(type: str) -> Callable[..., Any] | None:
    """What follows a job's external task without starting anything; None: it cannot."""
    found: Callable[..., Any] | None = getattr(module(type), "follow", None)
    return found


def broken_off(type: str, job_id: UUID, why: str) -> None:
    """Let the type put its rows right after a job that may have stopped in the middle."""
    if put_right := getattr(module(type), "broken_off", None):
        put_right(job_id, why)


def _said(type: str, name: str, params: Any) -> str:
    says = getattr(module(type), name, None)
    return str(says(params)) if says else ""
