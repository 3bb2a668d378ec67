"""web: a message under the bell of the admin's header, for one user of the tenant."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from audit.clock import DatabaseNow
from scheduler.handlers.notifications.channels.border import (
    Deliver,
    Endpoint,
    Message,
    Refused,
)
from scheduler.handlers.notifications.channels.one_line import one_line
from scheduler.handlers.notifications.channels.safe_url import safe_url
from scheduler.handlers.notifications.models import WebNotification

LONGEST_TITLE = 300  # characters
LONGEST_BODY = 10_000  # characters


class ConfigForm(forms.Form):
    """Nothing to configure: the recipient is a username."""


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[Deliver]:
    """Nothing to open: it is a row of our own."""
    yield partial(_deliver, endpoint)


def _deliver(endpoint: Endpoint, message: Message) -> str:
    reader = _readers(endpoint).filter(username=message.recipient).first()
    if reader is None:
        who = one_line(message.recipient, limit=80)
        raise Refused(f"“{who}” is no active user who may see tenant {endpoint.tenant}")
    row = WebNotification(
        tenant_id=endpoint.tenant_id,
        user=reader,
        notification_id=message.notification_id,
        title=one_line(message.subject, limit=LONGEST_TITLE),
        body=message.text[:LONGEST_BODY],
        url=safe_url(message.url),
        created_at=DatabaseNow(),
    )
    WebNotification.objects.bulk_create([row], ignore_conflicts=True)
    return message.key


def _readers(endpoint: Endpoint) -> QuerySet[User]:
    """Whom this tenant may tell something: its members, and the platform's staff."""
    member = Q(memberships__tenant_id=endpoint.tenant_id)
    staff = Q(memberships__tenant__is_platform=True) | Q(is_superuser=True)
    return User.objects.filter(member | staff, is_active=True).distinct()
