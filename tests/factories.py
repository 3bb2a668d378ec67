"""Rows for tests: plain functions, each with sensible values for what is not given."""

import itertools
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from audit import clock
from jobworker.models import Job
from workqueue.models import Membership, Node, Tenant, WorkItem

_numbers = itertools.count(1)


def tenant(slug: str = "", **values: Any) -> Tenant:
    """An active tenant; a slug of its own where none is given."""
    slug = slug or f"tenant-{next(_numbers)}"
    return Tenant.objects.create(**{"slug": slug, "name": slug.title(), **values})


def platform() -> Tenant:
    """The platform's own tenant, which a migration made."""
    return Tenant.objects.get(is_platform=True)


def user(username: str = "", **values: Any) -> User:
    """A member of staff without any right of its own; the password is "password"."""
    username = username or f"user-{next(_numbers)}"
    return User.objects.create_user(
        **{"username": username, "password": "password", "is_staff": True, **values}
    )


def superuser(username: str = "", **values: Any) -> User:
    """Somebody who may do everything; the password is "password"."""
    return user(username, **{"is_superuser": True, **values})


def member(of: Tenant, role: str = Membership.Role.OPERATOR, **values: Any) -> User:
    """A member of staff who sees this tenant."""
    one = user(**values)
    Membership.objects.create(user=one, tenant=of, role=role)
    return one


def node(kind: str = Node.Kind.WORKER, **values: Any) -> Node:
    """A process that has just beaten."""
    now = clock.now()
    number = next(_numbers)
    defaults: dict[str, Any] = {
        "id": clock.uuid7(),
        "host": "host",
        "pid": number,
        "version": "test",
        "started_at": now,
        "heartbeat_at": now,
    }
    return Node.objects.create(kind=kind, **{**defaults, **values})


def item(of: Tenant, handler: str = "tests.noop", **values: Any) -> WorkItem:
    """A pending item that may be claimed at once."""
    now = clock.now() - timedelta(seconds=1)
    fields = {field.name for field in WorkItem._meta.get_fields()}
    times = {
        name: now
        for name in ("created_at", "enqueued_at", "not_before")
        if name in fields
    }
    return WorkItem.objects.create(tenant=of, handler=handler, **{**times, **values})


def job(of: Tenant, type: str = "act_light", **values: Any) -> Job:
    """A pending job that was submitted a second ago."""
    defaults: dict[str, Any] = {
        "tenant_slug": of.slug,
        "tier": "light",
        "time_limit_s": 3600,
        "created_at": clock.now() - timedelta(seconds=1),
        "created_by": "test",
        "origin": "command",
    }
    return Job.objects.create(tenant=of, type=type, **{**defaults, **values})


def running_job(of: Tenant, by: Node, type: str = "act_light", **values: Any) -> Job:
    """A job that the process claimed a moment ago."""
    now = clock.now()
    held: dict[str, Any] = {
        "status": "running",
        "claim_id": clock.uuid7(),
        "node_id": by.pk,
        "node": str(by),
        **dict.fromkeys(
            ("claimed_at", "started_at", "heartbeat_at", "progress_at"), now
        ),
    }
    return job(of, type, **{**held, **values})
