"""A test through a channel."""

import pytest

from audit.models import Change
from scheduler.handlers.notifications import deliver
from scheduler.handlers.notifications.models import WebNotification
from scheduler.handlers.notifications.send_test import send_test
from tests import factories
from tests.scheduler.handlers.notifications.arrange import context, email, web
from tests.scheduler.handlers.notifications.mail_server import MailServer

pytestmark = pytest.mark.django_db


def test_the_answer_is_there_at_once_also_for_a_disabled_channel(
    smtp: MailServer,
) -> None:
    acme = factories.tenant()
    channel = email(acme, smtp, is_enabled=False)

    answer = send_test(channel, recipient="anna@example.com", who="boris")

    assert answer.error == ""
    assert smtp.recipients == ["anna@example.com"]
    answer.notification.refresh_from_db()
    assert answer.notification.state == "sent"
    change = Change.objects.get()
    assert (change.who, change.verb, change.new) == (
        "boris",
        "tested",
        {"recipient": "anna@example.com", "answer": "taken"},
    )


def test_a_test_that_is_not_taken_is_said_and_never_retried() -> None:
    acme = factories.tenant()
    channel = email(acme)

    answer = send_test(channel, recipient="anna@example.com", who="boris")

    assert answer.error == "connection refused by 127.0.0.1:1"
    answer.notification.refresh_from_db()
    channel.refresh_from_db()
    assert (answer.notification.state, answer.notification.last_error) == (
        "failed",
        answer.error,
    )
    assert channel.consecutive_failures == 0
    assert deliver.run(context(acme)).seen == 0


def test_a_web_test_reaches_its_reader() -> None:
    acme = factories.tenant()
    anna = factories.member(acme)
    assert send_test(web(acme), recipient=anna.username, who="boris").error == ""
    assert WebNotification.objects.get().user_id == anna.pk
