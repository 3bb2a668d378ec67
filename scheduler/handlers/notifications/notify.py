"""notify: how other code tells people something.

Both verbs only insert rows, in the caller's transaction: what is rolled back was never
said. Telling again with the same `dedupe_key` adds nothing.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q

from audit.clock import DatabaseNow
from audit.text import cut, gate, gate_json, visible
from scheduler.handlers.notifications.models import Channel, Notification
from workqueue.models import Membership, Tenant

LONGEST_KEY = 200  # characters, of the column
LONGEST_LINE = (
    2_000  # characters of a recipient or a subject; channels bound them further
)
LEADING = ("reply_to", "template")  # of a payload; never masked, as the recipient
ADMINS = "admins"  # name of the channel that notify_admins makes


def notify(
    channel: Channel,
    *,
    recipient: str,
    subject: str,
    dedupe_key: str,
    body_text: str = "",
    body_html: str = "",
    payload: Mapping[str, Any] | None = None,
    event_id: int | None = None,
    not_before: datetime | None = None,
    muted: bool = False,
) -> None:
    """Have a message sent, for the channel's tenant.

    `body_html` is markup and trusted; "" makes it from `body_text`. `payload` may hold
    url, reply_to, template and context. `not_before`: None sends it with the next run.
    `muted`: it is recorded as suppressed, visible and not sent.
    """
    state = Notification.State.SUPPRESSED if muted else Notification.State.PENDING
    row = Notification(
        tenant_id=channel.tenant_id,
        channel=channel,
        event_id=event_id,
        # What leads the message somewhere, or tells it from another, is never masked: a
        # user's name that is a password somewhere else would become nobody's.
        recipient=cut(visible(recipient), limit=LONGEST_LINE),
        subject=gate(subject, limit=LONGEST_LINE),
        body_text=gate(body_text),
        body_html=gate(body_html),
        payload=_payload(payload or {}),
        dedupe_key=_bounded(visible(dedupe_key)),
        state=state,
        next_attempt_at=None if muted else (not_before or DatabaseNow()),
        created_at=DatabaseNow(),
        finished_at=DatabaseNow() if muted else None,
    )
    Notification.objects.bulk_create([row], ignore_conflicts=True)


def notify_admins(
    tenant: Tenant, *, title: str, dedupe_key: str, body: str = "", url: str = ""
) -> None:
    """Put a message under the bell of the tenant's administrators.

    Where it has none, of the platform's: somebody must read it.
    """
    channel = _admins_channel(tenant)
    for user in admins_of(tenant):
        notify(
            channel,
            recipient=user.get_username(),
            subject=title,
            body_text=body,
            payload={"url": url} if url else {},
            dedupe_key=f"{dedupe_key}:{user.pk}",
        )


def admins_of(tenant: Tenant) -> list[User]:
    """Active administrators of the tenant, or of the platform where it has none."""
    active = User.objects.filter(is_active=True, is_staff=True).order_by("pk")
    administers = Q(memberships__role=Membership.Role.ADMINISTRATOR)
    own = list(active.filter(administers, memberships__tenant=tenant).distinct())
    if own:
        return own
    platform = administers & Q(memberships__tenant__is_platform=True)
    return list(active.filter(platform | Q(is_superuser=True)).distinct())


def _admins_channel(tenant: Tenant) -> Channel:
    """The tenant's web channel, made where none is enabled."""
    own = Channel.objects.filter(tenant=tenant)
    web = own.filter(kind=Channel.Kind.WEB, is_enabled=True)
    if found := web.order_by("id").first():
        return found
    taken = set(own.filter(name__startswith=ADMINS).values_list("name", flat=True))
    names = (f"{ADMINS} {number}" if number > 1 else ADMINS for number in count(1))
    made, _ = Channel.objects.get_or_create(
        tenant=tenant,
        name=next(name for name in names if name not in taken),
        defaults={"kind": Channel.Kind.WEB},
    )
    return made


def _payload(payload: Mapping[str, Any]) -> Any:
    return gate_json(dict(payload)) | {
        name: visible(str(payload[name])) for name in LEADING if payload.get(name)
    }


def _bounded(key: str) -> str:
    """The key, or one of the column's length that is as unique."""
    if len(key) <= LONGEST_KEY:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{key[: LONGEST_KEY - len(digest) - 1]}:{digest}"
