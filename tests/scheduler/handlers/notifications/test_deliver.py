"""notifications.deliver, against a real SMTP server."""

import logging
from datetime import timedelta

import pytest
from django.db import connection

from audit import clock
from scheduler.handlers.notifications import deliver
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import Channel, Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import (
    FakeModule,
    RateLimit,
    context,
    due,
    email,
    make_due,
    tenants_due,
)
from tests.scheduler.handlers.notifications.mail_server import MailServer

pytestmark = pytest.mark.django_db


# --- the worked examples


def test_a_refused_recipient_fails_alone_and_is_not_retried(smtp: MailServer) -> None:
    acme = factories.tenant()
    smtp.replies["b@example.com"] = "550 5.1.1 no such user"
    channel = email(acme, smtp)
    first, second, third = (due(channel, f"{name}@example.com") for name in "abc")

    outcome = deliver.run(context(acme))

    assert outcome.word == "partial"
    assert (outcome.seen, outcome.changed, outcome.failed) == (3, 2, 1)
    assert smtp.recipients == ["a@example.com", "c@example.com"]
    second.refresh_from_db()
    assert (second.state, second.last_error) == ("failed", "550 5.1.1 no such user")
    for row in (first, third):
        row.refresh_from_db()
        assert row.state == "sent"
        assert row.sent_at
        assert not row.last_error
    assert deliver.run(context(acme)).seen == 0
    assert smtp.tried.count("b@example.com") == 1


def test_a_rate_limited_channel_pauses_and_counts_no_attempt(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    slow = FakeModule(RateLimit(seconds=30))
    monkeypatch.setitem(border.MODULES, "slack_webhook", "fake")
    monkeypatch.setattr(border, "import_module", lambda _: slow)
    acme = factories.tenant()
    channel = Channel.objects.create(tenant=acme, name="ops", kind="slack_webhook")
    rows = [due(channel) for _ in range(4)]
    before = clock.now()

    outcome = deliver.run(context(acme))

    assert outcome.word == "succeeded"
    assert (outcome.seen, outcome.changed, outcome.skipped, outcome.failed) == (
        4,
        0,
        4,
        0,
    )
    assert slow.calls == 1
    assert 'slack "ops": rate limited, paused 30 s' in caplog.text
    channel.refresh_from_db()
    assert channel.paused_until is not None
    assert timedelta(seconds=29) < channel.paused_until - before < timedelta(seconds=35)
    for row in rows:
        row.refresh_from_db()
        assert (row.state, row.attempts) == ("pending", 0)
        assert row.next_attempt_at == channel.paused_until
    assert acme.pk not in tenants_due()
    assert deliver.run(context(acme)).seen == 0


def test_a_mail_server_that_is_down_costs_one_line_and_every_row_its_back_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    acme = factories.tenant()
    channel = email(acme)
    rows = [due(channel) for _ in range(3)]
    before = clock.now()

    outcome = deliver.run(context(acme))

    assert outcome.word == "failed"
    assert (outcome.seen, outcome.failed) == (3, 3)
    assert outcome.error == 'email channel "ops": connection refused by 127.0.0.1:1'
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in errors] == [outcome.error]
    for row in rows:
        row.refresh_from_db()
        assert (row.state, row.attempts) == ("pending", 1)
        assert row.next_attempt_at is not None
        wait = row.next_attempt_at - before
        assert timedelta(seconds=23.9) < wait < timedelta(seconds=36.1 + 5)
    channel.refresh_from_db()
    assert channel.last_error == "connection refused by 127.0.0.1:1"
    assert (channel.is_enabled, channel.consecutive_failures) == (True, 0)


def test_of_ten_recipients_seven_get_it_once_two_fail_and_one_is_tried_again(
    smtp: MailServer,
) -> None:
    acme = factories.tenant()
    smtp.replies |= {
        "r2@example.com": "550 5.1.1 no such user",
        "r5@example.com": "551 5.7.1 user moved",
        "r7@example.com": "451 4.3.0 try again later",
    }
    channel = email(acme, smtp)
    rows = [due(channel, f"r{number}@example.com") for number in range(10)]

    outcome = deliver.run(context(acme))

    assert (outcome.seen, outcome.changed, outcome.failed) == (10, 7, 3)
    assert len(smtp.taken) == 7
    assert smtp.connections == 1  # one for the batch
    states = list(
        Notification.objects.order_by("pk").values_list("state", "last_error")
    )
    assert states[2] == ("failed", "550 5.1.1 no such user")
    assert states[5] == ("failed", "551 5.7.1 user moved")
    assert states[7] == ("pending", "451 4.3.0 try again later")

    smtp.replies.clear()
    make_due(rows[7])
    again = deliver.run(context(acme))

    assert (again.seen, again.changed) == (1, 1)
    assert len(smtp.taken) == 8
    assert len(set(smtp.recipients)) == 8  # nobody got it twice


# --- the probe


def test_due_names_each_tenant_with_work_once(smtp: MailServer) -> None:
    acme, granite, idle = (factories.tenant() for _ in range(3))
    channel = email(acme, smtp)
    due(channel)
    due(channel)
    lapsed = due(email(granite, smtp))
    past = clock.now() - timedelta(seconds=1)
    Notification.objects.filter(pk=lapsed.pk).update(
        state="sending", next_attempt_at=past, claimed_until=past
    )
    due(email(idle, smtp), next_attempt_at=clock.now() + timedelta(minutes=1))

    assert sorted(tenants_due()) == sorted([acme.pk, granite.pk])


def test_the_probe_walks_the_index_of_live_rows_among_5000_sent() -> None:
    acme = factories.tenant()
    channel = email(acme)
    now = clock.now()
    Notification.objects.bulk_create(
        Notification(
            tenant=acme,
            channel=channel,
            recipient="anna@example.com",
            dedupe_key=f"old-{number}",
            state="sent",
            created_at=now,
            sent_at=now,
            finished_at=now,
        )
        for number in range(5_000)
    )
    for _ in range(20):
        due(channel)

    for _ in range(2):  # with whatever statistics there are, and with fresh ones
        plan = deliver.due(clock.now()).explain()
        assert "notification_due" in plan, plan
        assert "Seq Scan on notifications_notification" not in plan, plan
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
