"""given: the parameters that all Terraform job types have."""

import json
from collections.abc import Sequence
from typing import Any

from jobworker.exceptions import InvalidParams
from jobworker.models import Deployment
from jobworker.params import param
from jobworker.providers import workspace
from workqueue.models import Tenant

NAME = r"[a-z][a-z0-9-]{1,30}"
SAYS = "2 to 31 lower-case letters, digits and hyphens, a letter first"
MODULE = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
A_YEAR = 8_760  # hours
MOST = 5  # deployments that are named


def name(sentence: str) -> Any:
    """The deployment's name. It becomes a folder and a part of names at the provider."""
    return param(sentence, pattern=NAME, says=SAYS)


def module(
    sentence: str = "What to make it by: a folder of the job worker's modules.",
    default: str = "offline",
) -> Any:
    """The module's name."""
    return param(
        sentence,
        default=default,
        pattern=MODULE,
        says="a module's name",
    )


def variables() -> Any:
    """Further variables of the module."""
    return param(
        'More variables of the module, as a JSON object: {"delay": 5}. No secrets: they are shown.',
        default="",
        longest=10_000,
    )


def ttl_hours() -> Any:
    """When the sweep takes it away."""
    return param(
        "Hours after which it is destroyed by itself; 0: never.",
        default=0,
        low=0,
        high=A_YEAR,
    )


def protected() -> Any:
    """Whether anything may take it away."""
    return param("Never destroy it until this is taken off.", default=False)


def check(
    kind: str,
    *,
    module: str,
    variables: str,
    taken: Sequence[str],
    field: str = "module",
) -> None:
    """Raise InvalidParams for a module that is not there, or variables that are none."""
    problems = {}
    if module not in workspace.modules(kind):
        problems[field] = workspace.no_module(kind, module)
    try:
        twice = sorted(set(parsed(variables)) & set(taken))
    except ValueError:
        problems["variables"] = "Enter a JSON object, or nothing."
    else:
        if twice:
            problems["variables"] = (
                f"Give {', '.join(twice)} as a parameter of its own."
            )
    if problems:
        raise InvalidParams(problems)


def parsed(variables: str) -> dict[str, Any]:
    """The object that they are. Raises ValueError."""
    found = json.loads(variables or "{}", parse_constant=_no_number)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def unknown(kind: str, name: str, tenant: Tenant) -> dict[str, str]:
    """What stands against taking away a deployment that the tenant does not have."""
    has = Deployment.objects.filter(tenant=tenant, kind=kind)
    if has.filter(name=name).exists():
        return {}
    there = has.exclude(status=Deployment.Status.DESTROYED).order_by("name")
    names = list(there.values_list("name", flat=True)[: MOST + 1])
    shown = ", ".join(names[:MOST]) + (" and others" if len(names) > MOST else "")
    return {"name": f"{tenant.slug} has no {kind} {name}. It has {shown or 'none'}."}


def lock(kind: str, name: str) -> str:
    """What no second unfinished job may work on."""
    return f"deployment:{kind}:{name}"
