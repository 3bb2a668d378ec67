"""Checks of the dispatch table. Run by `manage.py check` and by `start`."""

from collections import Counter
from dataclasses import is_dataclass
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from jobworker import registry
from jobworker.registry import JobType


@register
def job_types(**_: Any) -> list[CheckMessage]:
    """Every type stands once, in a tier that exists, and its module can run."""
    try:
        rows = registry.rows()
    except ImportError as problem:
        hint = f"{settings.JOBWORKER_TYPES} must be a tuple of JobType rows."
        text = f"the job types cannot be imported: {problem}"
        return [Error(text, hint=hint, id="jobworker.E001")]
    counts = Counter(row.type for row in rows)
    twice = [
        Error(
            f"job type {type} stands in dispatch.py {count} times, in tiers "
            + ", ".join(row.tier for row in rows if row.type == type),
            hint="Leave the row of the tier that it belongs to.",
            id="jobworker.E002",
        )
        for type, count in counts.items()
        if count > 1
    ]
    return [*twice, *(found for row in rows for found in _problems(row))]


def _problems(row: JobType) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if row.tier not in registry.TIERS:
        found.append(
            Error(
                f"job type {row.type} is in no tier: {row.tier!r}",
                hint=f"Its tier in dispatch.py is one of {', '.join(registry.TIERS)}.",
                id="jobworker.E003",
            )
        )
    if row.time_limit.total_seconds() < 1 or not row.purpose:
        found.append(
            Error(
                f"job type {row.type} has no time limit of a second or more, or no purpose",
                hint="Fill in both columns of its row in dispatch.py.",
                id="jobworker.E004",
            )
        )
    try:
        module = registry.module(row.type)
    except ImportError as problem:
        module = None
        reason = str(problem)
    else:
        reason = "its Params is no dataclass, or it has no run"
    if not (
        module
        and is_dataclass(getattr(module, "Params", None))
        and callable(getattr(module, "run", None))
    ):
        found.append(
            Error(
                f"job type {row.type} cannot be run: {reason}",
                hint=f"It needs {settings.JOBWORKER_JOBS_PACKAGE}/{row.type}.py with a dataclass"
                " Params and run(ctx, params).",
                id="jobworker.E005",
            )
        )
    return found
