"""notifications.deliver when connections are lost and mail servers are down: nothing is lost by it."""

from datetime import timedelta

import pytest

from audit import clock
from scheduler.handlers.notifications import deliver, send
from scheduler.handlers.notifications.models import Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import (
    context,
    due,
    email,
    make_due,
)
from tests.scheduler.handlers.notifications.mail_server import MailServer, running

pytestmark = pytest.mark.django_db


def test_a_lost_connection_costs_its_message_and_the_next_ones_have_a_new_one(
    smtp: MailServer,
) -> None:
    acme = factories.tenant()
    smtp.replies["r1@example.com"] = "421 4.3.2 shutting down"
    channel = email(acme, smtp)
    rows = [due(channel, f"r{number}@example.com") for number in range(4)]

    outcome = deliver.run(context(acme))

    assert (outcome.changed, outcome.failed) == (3, 1)
    rows[1].refresh_from_db()
    assert (rows[1].state, rows[1].attempts) == ("pending", 1)
    assert rows[1].last_error == "421 4.3.2 shutting down"


def test_a_server_that_loses_every_connection_is_left_alone_for_now(
    smtp: MailServer,
) -> None:
    acme = factories.tenant()
    channel = email(acme, smtp)
    rows = [due(channel, f"r{number}@example.com") for number in range(8)]
    smtp.replies |= {row.recipient: "421 4.3.2 shutting down" for row in rows}

    outcome = deliver.run(context(acme))

    assert (outcome.seen, outcome.failed) == (8, 8)
    assert len(smtp.tried) == send.LOSSES + 1
    assert set(Notification.objects.values_list("state", "attempts")) == {
        ("pending", 1)
    }


def test_a_message_that_was_perhaps_taken_goes_once_more_an_hour_later_and_no_more(
    smtp: MailServer,
) -> None:
    acme = factories.tenant()
    row = due(email(acme, smtp))
    smtp.hangs_up = True
    before = clock.now()

    for _ in range(10):
        deliver.run(context(acme))
        row.refresh_from_db()
        if row.next_attempt_at is None:
            break
        assert row.next_attempt_at - before > timedelta(minutes=59)
        assert row.last_error.endswith("it was perhaps delivered")
        make_due(row)

    assert (row.state, row.attempts, len(smtp.taken)) == ("failed", 8, 2)
    assert row.last_error == (
        f"127.0.0.1:{smtp.port} closed the connection after it had the whole message:"
        " it was perhaps delivered"
    )


def test_a_server_that_is_down_for_however_long_fails_no_message() -> None:
    acme = factories.tenant()
    channel = email(acme)
    rows = [due(channel), due(channel, attempts=7)]

    for _ in range(20):
        before = clock.now()
        deliver.run(context(acme))
        for row in rows:
            row.refresh_from_db()
            assert row.state == "pending"
            assert row.next_attempt_at is not None
            assert row.next_attempt_at - before < timedelta(minutes=10)
        make_due(*rows)
    assert [row.attempts for row in rows] == [5, 7]

    # When it is back, what it says of a message has attempts left.
    with running(MailServer()) as server:
        server.replies["anna@example.com"] = "451 4.7.1 greylisted"
        channel.config["port"] = server.port
        channel.save()
        deliver.run(context(acme))
        rows[0].refresh_from_db()
        assert (rows[0].state, rows[0].attempts) == ("pending", 6)
        server.replies.clear()
        make_due(rows[0])
        deliver.run(context(acme))
        rows[0].refresh_from_db()
        assert rows[0].state == "sent"


def test_a_channel_that_nobody_gets_through_fails_no_message() -> None:
    acme = factories.tenant()
    channel = email(acme, config={"from_address": "nobody"})
    row = due(channel, attempts=7)

    for _ in range(4):
        make_due(row)
        deliver.run(context(acme))

    row.refresh_from_db()
    assert (row.state, row.attempts) == ("pending", 7)


def test_a_message_that_loses_the_connection_where_others_go_through_ends(
    smtp: MailServer,
) -> None:
    acme = factories.tenant()
    smtp.replies["bad@example.com"] = "421 4.3.2 I do not like this one"
    channel = email(acme, smtp)
    good, bad = due(channel), due(channel, "bad@example.com", attempts=7)

    deliver.run(context(acme))

    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.state, bad.state, bad.attempts) == ("sent", "failed", 8)


def test_a_server_that_takes_few_messages_of_a_connection_gets_them_all(
    smtp: MailServer,
) -> None:
    smtp.most = 3
    acme = factories.tenant()
    channel = email(acme, smtp)
    for number in range(20):
        due(channel, f"r{number}@example.com")

    outcome = deliver.run(context(acme))

    # Each connection but the last ends over one more message, which has its back-off.
    assert (outcome.changed, outcome.failed) == (15, 5)
    assert len(set(smtp.recipients)) == 15
