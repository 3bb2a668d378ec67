"""notifications.deliver: send what is due through each channel of the tenant."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from scheduler.handlers.notifications import claim, send
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import Notification
from workqueue.context import Context, Outcome

BATCH = 200  # rows of a run, shared among the channels


def due(now: datetime) -> QuerySet[Any, Any]:
    """Tenants with a row to send through a channel that can be used."""
    rows = Notification.objects.filter(next_attempt_at__lte=now)
    usable = rows.filter(
        channel__is_enabled=True, channel__kind__in=list(border.MODULES)
    )
    return (
        usable.exclude(channel__paused_until__gt=now)
        .values_list("tenant_id")
        .distinct()
    )


def run(ctx: Context) -> Outcome:
    """Send up to BATCH due messages, one by one; what became of each is on its row."""
    channels = claim.channels_with_work(tenant_id=ctx.tenant_id)
    more = False
    for channel in channels:
        share = BATCH // len(channels) or 1
        batch = claim.take(channel, claim_id=ctx.claim_id, limit=share)
        went_on = send.send(ctx, channel=channel, batch=batch)
        more |= went_on and len(batch) == share
    return ctx.outcome(_summary(ctx), again_in=timedelta() if more else None)


def _summary(ctx: Context) -> str:
    tally = ctx.tally
    if not tally.seen:
        return "nothing due"
    parts = [f"sent {tally.changed:,} of {tally.seen:,}"]
    if tally.failed:
        parts.append(f"{tally.failed:,} not taken")
    if tally.skipped:
        parts.append(f"{tally.skipped:,} left for later")
    return ", ".join(parts)
