"""send_test: one message through a channel, now, and what the other side answered.

The message is a notification like any other and stands in the list with its result,
but nobody retries it. Works for a disabled or paused channel too: that is when an
operator wants to know. The channel's count of failures is left alone.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from audit import clock, ledger
from audit.clock import DatabaseNow
from scheduler.handlers.notifications import render, sql
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import Channel, Notification
from workqueue.context import text_of

PATIENCE = timedelta(seconds=20)  # somebody is looking at a page that loads
SAID = (
    border.Refused,
    border.Deferred,
    border.Unreachable,
    border.PerhapsTaken,
    border.Broken,
    border.RateLimited,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a test."""

    notification: Notification
    error: str  # "": it was taken


def send_test(channel: Channel, *, recipient: str, who: str) -> Answer:
    """Takes as long as the other side does, bounded by the channel's timeouts."""
    row = _row(channel, recipient=recipient, who=who)
    error = ""
    try:
        endpoint = replace(channel.endpoint(), patience=PATIENCE)
        with border.opened(endpoint) as deliver:
            row.sent(deliver(render.message(row, endpoint=endpoint)))
    except SAID as problem:
        error = str(problem)
    except Exception as problem:  # a fault of ours is an answer too
        error = f"{type(problem).__name__}: {text_of(problem)}"
    if error:
        row.failed(error)
    ledger.change(
        who=who,
        origin="admin",
        subject=f"channel:{channel.name}",
        verb="tested",
        new={"recipient": recipient, "answer": error or "taken"},
        tenant_id=channel.tenant_id,
    )
    return Answer(notification=row, error=error)


def _row(channel: Channel, *, recipient: str, who: str) -> Notification:
    """Claimed from the start, so that no run sends it as well."""
    claim_id = clock.uuid7()
    return Notification.objects.create(
        tenant_id=channel.tenant_id,
        channel=channel,
        recipient=recipient,
        subject=f"Test of channel “{channel.name}”",
        body_text=f"This is a test that {who} sent. The channel works.",
        dedupe_key=f"test:{claim_id}",
        state=Notification.State.SENDING,
        attempts=1,
        claim_id=claim_id,
        next_attempt_at=DatabaseNow() + sql.HELD,
        claimed_until=DatabaseNow() + sql.HELD,
        created_at=DatabaseNow(),
    )
