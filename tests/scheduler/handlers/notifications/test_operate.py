"""Operators' verbs, and what is written of them."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from audit.clock import DatabaseNow
from audit.models import Change
from scheduler.handlers.notifications import claim, operate, sql
from scheduler.handlers.notifications.models import Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import due, email

pytestmark = pytest.mark.django_db


def test_each_moved_row_is_written_with_who_why_old_and_new() -> None:
    channel = email(factories.tenant())
    failed, sent = due(channel), due(channel)
    for row, state in ((failed, "failed"), (sent, "sent")):
        Notification.objects.filter(pk=row.pk).update(
            state=state, next_attempt_at=None, finished_at=DatabaseNow()
        )

    moved = operate.retry(
        Notification.objects.order_by("pk"), who="anna", why="mailbox is back"
    )

    assert moved == 1
    change = Change.objects.get()
    assert (change.who, change.origin, change.verb, change.why) == (
        "anna",
        "admin",
        "retried",
        "mailbox is back",
    )
    assert (change.subject, change.tenant_id) == (
        f"notification:{failed.pk}",
        channel.tenant_id,
    )
    assert (change.old, change.new) == ({"state": "failed"}, {"state": "pending"})


@pytest.mark.parametrize("verb", [operate.retry, operate.suppress])
def test_a_send_that_died_in_a_disabled_channel_is_left_to_the_operator(
    verb: Any,
) -> None:
    channel = email(factories.tenant())
    due(channel)
    [row] = claim.take(channel, claim_id=clock.uuid7(), limit=1)
    assert verb([row], who="anna") == 0  # it may be on its way

    with clock.at(clock.now() + sql.LEASE + timedelta(seconds=1)):
        assert verb([row], who="anna") == 1

    late = row.sent("id")
    row.refresh_from_db()
    assert (late, row.claimed_until) == (False, None)
    assert row.state == {"retry": "pending", "suppress": "suppressed"}[verb.__name__]


def test_what_is_suppressed_is_not_sent() -> None:
    row = due(email(factories.tenant()))
    assert operate.suppress([row], who="anna") == 1
    assert operate.suppress([row], who="anna") == 0
    row.refresh_from_db()
    assert row.state == "suppressed"
    assert Change.objects.count() == 1
