"""Every address of the site, from the resolver itself, with ids of a planted world.

A page that is added later is walked without a change here. One with an id that cannot be
made fails the walk and says so: give the kind of id in `_value`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils.text import slugify

from jobworker import registry as job_registry
from tests.world import World
from workqueue import registry
from workqueue.policy import WORKER_NODE_CONFIGURATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An address that the resolver knows."""

    name: str  # "admin:run"; "" where it has none
    route: str
    arguments: tuple[str, ...]
    view: Any

    def addresses(self, world: World) -> list[str]:
        """Where it stands, with the world's ids; one without arguments stands once."""
        if not self.name:
            return ["/" + self.route.replace("(?P<url>.*)$", "no/such/page")]
        each = [_values(self, argument, world) for argument in self.arguments]
        return [
            reverse(self.name, kwargs=dict(zip(self.arguments, one, strict=True)))
            for one in product(*each)
        ]


def pages() -> list[Page]:
    """All of them."""
    return list(_under(get_resolver().url_patterns, "", ""))


def _under(patterns: Any, space: str, route: str) -> Iterator[Page]:
    for one in patterns:
        here = f"{route}{one.pattern}"
        if isinstance(one, URLResolver):
            inner = f"{space}{one.namespace}:" if one.namespace else space
            yield from _under(one.url_patterns, inner, here)
        elif isinstance(one, URLPattern):
            pattern: Any = one.pattern
            names = pattern.converters or pattern.regex.groupindex
            yield Page(
                name=f"{space}{one.name}" if one.name else "",
                route=here,
                arguments=tuple(names),
                view=one.callback,
            )


def _values(page: Page, argument: str, world: World) -> list[Any]:
    """The world's ids for an argument of an address."""
    plain = {
        "app_label": ["auth"],
        "url": ["no/such/page"],
        "key": [next(iter(registry.rows()))],
        "slug": [slugify(WORKER_NODE_CONFIGURATION.name)],
        "version": [1],
        "form": ["csv", "jsonl"],
        "type": list(job_registry.types())[:1],
        "content_type_id": [_channels().pk],
    }
    if argument in plain:
        return plain[argument]
    if argument == "claim_id":
        claims = [row.claim_id for row in world.rows.get("workqueue.WorkItem", ())]
        runs = [row.pk for row in world.rows.get("audit.Run", ())]
        return [claim for claim in claims if claim] + runs
    label = _label(page, argument)
    return [row.pk for row in world.rows.get(label, ())]


def _label(page: Page, argument: str) -> str:
    """The model that an id is of: from the address's name, or its own ("pause_id")."""
    name = page.name.rpartition(":")[2]
    if name == "view_on_site":
        return "notifications.Channel"
    for model in apps.get_models():
        meta = model._meta
        if name.startswith(f"{meta.app_label}_{meta.model_name}_"):
            return meta.label
    stem = (
        argument.removesuffix("_id")
        if argument.endswith("_id")
        else name.partition("_")[0]
    )
    for model in apps.get_models():
        if (model._meta.model_name or "").endswith(stem):
            return model._meta.label
    raise AssertionError(
        f"{page.name} has the argument {argument!r}: say in tests/walk.py what its ids are of"
    )


def _channels() -> ContentType:
    return ContentType.objects.get(app_label="notifications", model="channel")
