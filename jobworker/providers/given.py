"""given: the parameters that all Terraform job types have."""

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from audit.text import DEEPEST, visible
from jobworker.models import Deployment
from jobworker.params import param
from jobworker.providers import workspace
from workqueue.bounds import quote
from workqueue.models import Tenant

NAME = r"[a-z][a-z0-9-]{1,30}"
SAYS = "2 to 31 lower-case letters, digits and hyphens, a letter first"
MODULE = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
A_YEAR = 8_760  # hours
MOST = 5  # deployments that are named
NO_OBJECT = "Enter a JSON object, or nothing."
TOO_DEEP = f"It is nested too deep. Enter at most {DEEPEST} levels."


def name(sentence: str) -> Any:
    """The deployment's name. It becomes a folder and a part of names at the provider."""
    return param(sentence, pattern=NAME, says=SAYS)


def module(
    kind: str,
    sentence: str = "What to make it by: a folder of the job worker's modules.",
    default: str = "offline",
) -> Any:
    """The name of a module of that kind."""
    return param(
        sentence,
        default=default,
        pattern=MODULE,
        says="a module's name",
        check=partial(_no_module, kind),
    )


def variables(*taken: str) -> Any:
    """Further variables of the module. `taken`: those that are parameters of their own."""
    return param(
        'More variables of the module, as a JSON object: {"delay": 5}. No secrets: they are shown.',
        default="",
        longest=10_000,
        check=partial(_unusable, taken),
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


def parsed(variables: str) -> dict[str, Any]:
    """The object that they are. Raises ValueError with a sentence that says what is wrong.

    What passes can be kept by both databases and written for Terraform and Packer.
    """
    try:
        found = json.loads(variables or "{}")
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError:
        raise ValueError(NO_OBJECT) from None
    if not isinstance(found, dict):
        raise ValueError(NO_OBJECT)
    for place, value in _inside(found):
        # Looked at when it is read: 1e999 is infinite, "\\u0000" a NUL only then.
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(
                f"{quote(place)} is no number of JSON. Enter a finite one."
            )
        if isinstance(value, str) and visible(value) != value:
            raise ValueError(
                f"{quote(place)} has a character that cannot be kept, NUL or half of a"
                " surrogate pair. Leave it out."
            )
    return found


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


def _inside(value: Any, place: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """All names and single values with where they stand: tags.owner, disks[0].size."""
    if depth > DEEPEST:
        raise ValueError(TOO_DEEP)
    if isinstance(value, dict):
        for name, inner in value.items():
            at = f"{place}.{visible(name)}".removeprefix(".")
            yield at, name
            yield from _inside(inner, at, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _inside(inner, f"{place}[{number}]", depth + 1)
    else:
        yield place, value


def _no_module(kind: str, module: str) -> str:
    known = module in workspace.modules(kind)
    return "" if known else workspace.no_module(kind, module)


def _unusable(taken: tuple[str, ...], variables: str) -> str:
    try:
        twice = sorted(set(parsed(variables)) & set(taken))
    except ValueError as problem:
        return str(problem)
    return f"Give {', '.join(twice)} as a parameter of its own." if twice else ""
