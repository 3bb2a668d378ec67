"""disable: a channel that nothing gets through is switched off, and its owners are told."""

import logging
from uuid import UUID

from django.db import transaction

from audit import ledger
from scheduler.handlers.notifications.models import MAX_BROKEN, Channel
from scheduler.handlers.notifications.notify import notify_admins

logger = logging.getLogger(__name__)

# As text: to reverse it, a worker would have to import every page of the admin.
CHANNEL_PAGE = "/admin/notifications/channel/{}/change/"


def after_failure(channel: Channel, *, error: str, claim_id: UUID) -> None:
    """Count a failure of the channel itself; the fifth in a row disables it, in one transaction."""
    label = channel.endpoint().label
    with transaction.atomic():
        if not channel.broke(error):
            return
        ledger.event(
            type="channel.disabled",
            tenant_id=channel.tenant_id,
            tenant=channel.tenant.slug,
            subject=f"channel:{channel.pk}",
            data={"name": channel.name, "kind": channel.kind, "reason": error},
            severity=3,
        )
        notify_admins(
            channel.tenant,
            title=f"{label[0].upper()}{label[1:]} is disabled",
            body=f"{error}. That was the case {MAX_BROKEN} times in a row. What waits for it"
            " is kept. Correct the channel, send a test and enable it again.",
            url=CHANNEL_PAGE.format(channel.pk),
            dedupe_key=f"channel-disabled:{channel.pk}:{claim_id}",
        )
    logger.error("%s: disabled after %s failures in a row", label, MAX_BROKEN)
