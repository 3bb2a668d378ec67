"""What tests of the screens share: people with rights, runs in the ledger, hostile text."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Permission, User
from django.test import Client

from audit import clock, ledger
from audit.ledger import RunRecord
from tests import factories
from workqueue.models import Membership, Tenant, WorkItem

# What must never become markup, wherever it is shown.
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></pre><svg/onload=alert(3)>"
    "{{7*7}}{% now 'Y' %}javascript:alert(4)\u202etxt"
)
# None of these may stand in a page as it is.
LIVE = ("<script>alert(1)", "<img src=x", "</pre><svg", "<svg/onload", "\u202e")


def signed_in(user: User) -> Client:
    """A browser of this person."""
    client = Client()
    client.force_login(user)
    return client


def staff(
    of: Tenant, *rights: str, role: str = Membership.Role.OPERATOR, **values: Any
) -> User:
    """A member of a tenant with Django permissions: "audit.view_run"."""
    one = factories.member(of, role, **values)
    for right in rights:
        app, _, codename = right.partition(".")
        one.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return one


def run(of: Tenant, **values: Any) -> RunRecord:
    """An attempt in the ledger that has just succeeded."""
    now = values.get("finished_at") or clock.now()
    started = now - timedelta(milliseconds=214)
    defaults: dict[str, Any] = {
        "id": clock.uuid7(started),
        "tenant_id": of.pk,
        "tenant": of.slug,
        "handler": "tests.noop",
        "trigger": "slot",
        "enqueued_at": started - timedelta(seconds=1),
        "claimed_at": started,
        "started_at": started,
        "finished_at": now,
        "outcome": "succeeded",
        "attempt": 1,
        "node": "host, 1",
    }
    record = RunRecord(**{**defaults, **values})
    ledger.record([record], finish_id=uuid4())
    return record


def executing(of: Tenant, **values: Any) -> WorkItem:
    """An item that a worker holds and runs."""
    now = clock.now()
    started = now - timedelta(seconds=5)
    defaults: dict[str, Any] = {
        "status": WorkItem.Status.EXECUTING,
        "claim_id": clock.uuid7(started),
        "node": "queue-1, 31",
        "node_id": uuid4(),
        "claimed_at": started,
        "renewed_at": now,
        "started_at": started,
        "attempts": 1,
        "trigger": "slot",
        "tenant_slug": of.slug,
    }
    return factories.item(of, **{**defaults, **values})


def pending(of: Tenant, **values: Any) -> WorkItem:
    """An item that waits."""
    return factories.item(of, **{"trigger": "slot", "tenant_slug": of.slug, **values})


def held(of: Tenant, **values: Any) -> WorkItem:
    """An item that waits for an operator."""
    more = {
        "status": WorkItem.Status.HELD,
        "recoveries": 3,
        "held_reason": "3 workers stopped while running it",
    }
    return pending(of, **{**more, **values})
