"""A row of everything, with a given text in every column that takes one.

Made from the models themselves: a table that is added later is planted without a change
here, or fails the tests that walk all pages until RULES says how its row is made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db import models

from audit import clock
from tests import factories
from workqueue import registry
from workqueue.models import Tenant, WorkItem
from workqueue.policy import WORKER_NODE_CONFIGURATION

APPS = (
    "audit",
    "workqueue",
    "scheduler",
    "jobworker",
    *(name.rpartition(".")[2] for name in settings.DOMAIN_APPS),
)
# Rows that are made together with others, or that nobody shows.
APART = {"workqueue.Tenant", "scheduler.MasterLease", "scheduler.BootstrapStep"}

type Rows = dict[str, list[Any]]


@dataclass(slots=True)
class World:
    """What was planted for one tenant, by the label of the model; platform: its own rows."""

    of: Tenant
    text: str
    rows: Rows = field(default_factory=dict)

    def one(self, label: str) -> Any:
        """A row of the model, made if there is none yet."""
        if label not in self.rows:
            self.add(label)
        return self.rows[label][0]

    def add(self, label: str, **values: Any) -> Any:
        """One more row of the model."""
        model = apps.get_model(label)
        rule = RULES.get(label, _nothing)
        given = {**rule(self), **values}
        for each in model._meta.concrete_fields:
            if each.name not in given and each.attname not in given:
                given.update(self._value(each))
        row = model._base_manager.create(**given)
        self.rows.setdefault(label, []).append(row)
        return row

    def _value(self, each: Any) -> dict[str, Any]:
        """What the column holds: the tenant, the text, or as little as it takes."""
        if each.name in ("tenant", "tenant_slug") and not each.is_relation:
            return {each.name: self.of.slug}
        if each.name == "tenant_id":
            return {each.name: self.of.pk}
        if isinstance(each, models.ForeignKey):
            return self._related(each)
        if each.choices:
            return {} if each.has_default() else {each.name: each.choices[0][0]}
        if isinstance(each, models.JSONField):
            return {
                each.name: [self.text]
                if each.default is list
                else {self.text: self.text}
            }
        if type(each) in TEXTS:
            return {each.name: self.text[: each.max_length]}
        if each.null or each.has_default() or isinstance(each, models.AutoField):
            return {}
        return {each.name: PLAIN[each.get_internal_type()]()}

    def _related(self, each: Any) -> dict[str, Any]:
        label = each.related_model._meta.label
        if label == "workqueue.Tenant":
            return {each.name: self.of}
        if label == "auth.User":
            return {each.name: self.one("auth.User")}
        return {} if each.null else {each.name: self.one(label)}


TEXTS = (
    models.CharField,
    models.TextField,
    models.SlugField,
    models.EmailField,
    models.URLField,
)
PLAIN: dict[str, Callable[[], Any]] = {
    "UUIDField": clock.uuid7,
    "DateTimeField": clock.now,
    "BooleanField": bool,
    "GenericIPAddressField": lambda: "203.0.113.7",
    **dict.fromkeys(
        (
            "IntegerField",
            "BigIntegerField",
            "SmallIntegerField",
            "PositiveIntegerField",
        ),
        lambda: 1,
    ),
}


def _nothing(world: World) -> dict[str, Any]:
    return {}


def _person(world: World) -> User:
    """Somebody with the text in his name."""
    name = world.text[:140]
    taken = User.objects.filter(username__startswith=name).count()
    return factories.user(f"{name}{taken or ''}")


def _handler(world: World) -> str:
    """One that is known, so that its row stands on the timetable."""
    return next(iter(registry.rows()))


# What the columns themselves do not say.
RULES: dict[str, Callable[[World], dict[str, Any]]] = {
    "workqueue.Membership": lambda world: {"user": _person(world)},
    "workqueue.Pause": lambda world: {"scope": "tenant", "handler": ""},
    "workqueue.Setting": lambda world: {
        "name": WORKER_NODE_CONFIGURATION.name,
        "values": {},
        "origin": "admin",
    },
    "workqueue.WorkItem": lambda world: {
        "trigger": "slot",
        "dedup_key": f"{len(world.rows.get('workqueue.WorkItem', ()))} {world.text}"[
            :200
        ],
    },
    "workqueue.Node": lambda world: {"kind": "server"},
    "jobworker.TerraformState": lambda world: {"body": "{}"},
    "jobworker.Job": lambda world: {
        "tier": "heavy",
        "lock": "",
        "exclusive": "",
        "status": "failed",
        "claim_id": clock.uuid7(),
        "started_at": clock.now() - timedelta(minutes=1),
        "finished_at": clock.now(),
        "phases": [{"name": world.text, "at": clock.now().isoformat()}],
    },
    "scheduler.Schedule": lambda world: {"key": _handler(world), "cadence": ""},
    "scheduler.Tick": lambda world: {"blocked_tenants": [world.of.pk]},
    "audit.Run": lambda world: {"outcome": "failed", "attempt": 1, "trigger": "slot"},
    "audit.Line": lambda world: {"claim_id": world.one("audit.Run").pk, "level": 40},
    "audit.NodeEvent": lambda world: {
        "node_id": world.one("workqueue.Node").pk,
        "kind": "server",
    },
    "audit.LateResult": lambda world: {"claim_id": world.one("audit.Run").pk},
    "notifications.Channel": lambda world: {"kind": "email"},
    "notifications.Notification": lambda world: {
        "state": "failed",
        "next_attempt_at": None,
        "finished_at": clock.now(),
    },
    "operations.BulkOperation": lambda world: {"tenants": [world.of.pk]},
    "operations.BulkResult": lambda world: {
        "target": str(world.one("workqueue.WorkItem").pk)
    },
    "archival.ArchivalPolicy": lambda world: {"record_type": "runs", "keep_days": 30},
}


def has_tenant(model: type[models.Model]) -> bool:
    """Whether its rows say whose they are."""
    return any(
        each.name in ("tenant", "tenant_id") for each in model._meta.concrete_fields
    )


def ours() -> Iterator[type[models.Model]]:
    """The models whose rows are planted."""
    for model in apps.get_models():
        if model._meta.app_label in APPS and model._meta.label not in APART:
            yield model


def of_tenant(slug: str, text: str) -> World:
    """A row of every table that has a tenant, and a member of staff."""
    tenant = Tenant.objects.create(slug=slug[:64], name=text[:200], modules=[text])
    world = World(of=tenant, text=text)
    member = world.one("workqueue.Membership").user
    User.objects.filter(pk=member.pk).update(
        first_name=text[:150], last_name=text[:150], email=text[:254]
    )
    world.rows["auth.User"] = [member]
    world.rows["workqueue.Tenant"] = [tenant]
    for model in ours():
        if has_tenant(model) or model._meta.label == "audit.Line":
            world.one(model._meta.label)
    now = clock.now()
    world.add(
        "workqueue.WorkItem",
        status=WorkItem.Status.EXECUTING,
        claim_id=clock.uuid7(),
        claimed_at=now,
        renewed_at=now,
        started_at=now - timedelta(seconds=3),
        attempts=1,
    )
    world.add("workqueue.WorkItem", status=WorkItem.Status.HELD)
    world.add("jobworker.Job", status="pending", claim_id=None, finished_at=None)
    world.add(
        "jobworker.Job",
        status="running",
        node_id=clock.uuid7(),
        heartbeat_at=now,
        finished_at=None,
    )
    return world


def of_platform(text: str) -> World:
    """A row of every table that has no tenant, and of those that may have none."""
    world = World(of=factories.platform(), text=text)
    world.rows["auth.User"] = [_person(world)]
    for model in ours():
        if not has_tenant(model) and model._meta.label != "audit.Line":
            world.one(model._meta.label)
    world.add("audit.Change", tenant_id=None)
    world.add("auth.Group", name=text[:150])
    world.add("axes.AccessAttempt")
    return world
