"""Channels, notifications and contexts for the tests of this domain."""

import itertools
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from audit import clock
from audit.clock import DatabaseNow
from scheduler.handlers.notifications import deliver
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import Channel, Notification
from tests.scheduler.handlers.notifications.mail_server import MailServer
from workqueue.context import Context
from workqueue.models import Tenant

_numbers = itertools.count(1)


def context(of: Tenant, **values: Any) -> Context:
    """An attempt of notifications.deliver for the tenant, twelve minutes before its limit."""
    now = clock.now()
    given: dict[str, Any] = {
        "key": "notifications.deliver",
        "tenant_id": of.pk,
        "tenant": of.slug,
        "dedup_key": "",
        "now": now,
        "slot": now,
        "trigger": "slot",
        "attempt": 1,
        "claim_id": clock.uuid7(),
        "deadline": now + timedelta(minutes=12),
        "stopping": lambda: False,
        "progress": lambda _: None,
    }
    return Context(**{**given, **values})


def email(
    of: Tenant, server: MailServer | None = None, *, name: str = "ops", **values: Any
) -> Channel:
    """An e-mail channel to the server; without one, to a port where nobody listens."""
    where = {"host": "127.0.0.1", "port": server.port if server else 1}
    config = {
        **where,
        "from_address": "millrace@example.com",
        **values.pop("config", {}),
    }
    return Channel.objects.create(
        tenant=of, name=name, kind=Channel.Kind.EMAIL, config=config, **values
    )


def web(of: Tenant, *, name: str = "web", **values: Any) -> Channel:
    return Channel.objects.create(tenant=of, name=name, kind=Channel.Kind.WEB, **values)


def due(
    channel: Channel, recipient: str = "anna@example.com", **values: Any
) -> Notification:
    """A notification that may be sent now."""
    given: dict[str, Any] = {
        "tenant_id": channel.tenant_id,
        "channel": channel,
        "recipient": recipient,
        "subject": "Hello",
        "body_text": "How are you?",
        "dedupe_key": f"key-{next(_numbers)}",
        "next_attempt_at": DatabaseNow(),
        "created_at": DatabaseNow(),
    }
    made = Notification.objects.create(**{**given, **values})
    made.refresh_from_db()
    return made


def make_due(*rows: Notification) -> None:
    """Let the back-off of these be over."""
    Notification.objects.filter(pk__in=[row.pk for row in rows]).update(
        next_attempt_at=DatabaseNow()
    )


class RateLimit:
    """Always asks for a pause."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, message: border.Message) -> str:
        raise border.RateLimited(pause=timedelta(seconds=self.seconds))


class FakeModule:
    """A module of a kind that is not built yet."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls = 0

    def opened(self, endpoint: border.Endpoint) -> Any:
        return nullcontext(self._deliver)

    def _deliver(self, message: border.Message) -> str:
        self.calls += 1
        return self.answer(message)


def tenants_due() -> list[int]:
    """Tenants that the probe names now."""
    return [tenant_id for (tenant_id,) in deliver.due(clock.now())]
