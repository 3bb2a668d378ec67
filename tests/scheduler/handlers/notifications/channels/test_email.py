"""The e-mail channel, against a real SMTP server."""

import socket
from typing import Any

import pytest
from django.core import mail
from django.db import connection

from scheduler.handlers.notifications import deliver
from scheduler.handlers.notifications.channels import email as channel_module
from scheduler.handlers.notifications.models import Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import context, due, email
from tests.scheduler.handlers.notifications.mail_server import MailServer, running

pytestmark = pytest.mark.django_db

BAD = {
    "carriage return": "a\rX-Evil: 1",
    "line feed": "a\nX-Evil: 1",
    "a Bcc of its own": "a\r\nBcc: thief@example.com",
    "a body of its own": "a\r\n\r\nEvil body",
    "line separator": "a\u2028Bcc: thief@example.com",
    "next line": "a\x85Bcc: thief@example.com",
    "NUL": "a\x00b",
    "2,000 characters": "a" * 2_000,
    "right-to-left override": "a\u202egnp.exe",
    "lone surrogate": "a\udcd1b",
}


def test_no_text_of_a_message_can_inject_a_header_or_a_recipient(
    smtp: MailServer,
) -> None:
    acme = factories.tenant("acme")
    channel = email(acme, smtp)
    good = due(channel, "good@example.com")
    subjects, recipients, replies = [], [], []
    for text in map(stored, BAD.values()):
        subjects.append(due(channel, "bad@example.com", subject=text))
        recipients.append(due(channel, f"{text}@example.com"))
        replies.append(due(channel, payload={"reply_to": f"{text}@example.com"}))

    outcome = deliver.run(context(acme))

    assert (outcome.changed, outcome.failed) == (1 + len(BAD), 2 * len(BAD))
    assert smtp.tried == ["good@example.com", *["bad@example.com"] * len(BAD)]
    clean(smtp)
    for row in [good, *subjects]:
        row.refresh_from_db()
        assert row.state == "sent"
    for row in [*recipients, *replies]:
        row.refresh_from_db()
        assert row.state == "failed"
        assert "is not an e-mail address" in row.last_error


def test_no_text_of_a_channel_can_inject_a_header_or_a_recipient(
    smtp: MailServer,
) -> None:
    acme = factories.tenant("acme")
    named, wrong = [], []
    for number, text in enumerate(map(stored, BAD.values())):
        config = {"from_name": text}
        named.append(due(email(acme, smtp, name=f"n{number}", config=config)))
        config = {"from_address": f"{text}@example.com"}
        wrong.append(due(email(acme, smtp, name=f"a{number}", config=config)))

    deliver.run(context(acme))

    assert smtp.recipients == ["anna@example.com"] * len(BAD)
    clean(smtp)
    for row in named:
        row.refresh_from_db()
        assert row.state == "sent"
    for row in wrong:  # nobody gets through, and nothing is lost
        row.refresh_from_db()
        assert row.state == "pending"
        assert "is not an e-mail address" in row.last_error


def clean(smtp: MailServer) -> None:
    """Nothing that was taken has a header or a body of somebody else's making."""
    for _, taken in smtp.taken:
        assert taken["Bcc"] is None
        assert taken["X-Evil"] is None
        assert len(taken.get_all("To")) == 1
        text = taken.get_body(("plain",)).get_content()  # type: ignore[union-attr]
        assert text.startswith("How are you?")


@pytest.mark.parametrize(
    "recipient",
    [
        "",
        "anna",
        "a@example.com, b@example.com",
        "a@example.com;b@example.com",
        "Anna <a@example.com>",
        "<a@example.com>",
        '"a b"@example.com',
        "ü@example.com",
        "a@" + "b" * 250 + ".example",
    ],
)
def test_a_recipient_is_one_plain_address_or_refused(
    smtp: MailServer, recipient: str
) -> None:
    acme = factories.tenant()
    row = due(email(acme, smtp), recipient)

    deliver.run(context(acme))

    row.refresh_from_db()
    assert row.state == "failed"
    assert not smtp.tried


def test_an_e_mail_has_both_bodies_its_names_and_a_stable_id(
    smtp: MailServer, settings: Any
) -> None:
    settings.BASE_URL = "https://millrace.example"
    acme = factories.tenant("acme")
    channel = email(
        acme, smtp, config={"from_name": 'Acme "Ops"', "reply_to": "help@example.com"}
    )
    row = due(
        channel, subject="Grüße", body_text="1 < 2\n\nBye", payload={"url": "/admin/x/"}
    )

    deliver.run(context(acme))

    [(to, taken)] = smtp.taken
    assert to == ["anna@example.com"]
    assert taken["Subject"] == "Grüße"
    assert taken["From"] == '"Acme \\"Ops\\"" <millrace@example.com>'
    assert taken["Reply-To"] == "help@example.com"
    text = taken.get_body(("plain",)).get_content().replace("\r\n", "\n")  # type: ignore[union-attr]
    html = taken.get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert text.startswith("1 < 2\n\nBye\n\nhttps://millrace.example/admin/x/")
    assert "<p>1 &lt; 2</p>" in html
    assert 'href="https://millrace.example/admin/x/"' in html
    row.refresh_from_db()
    assert row.provider_id == taken["Message-ID"]
    assert taken["Message-ID"].startswith(f"<n-{row.pk}-")
    assert taken["Message-ID"].endswith("@millrace.example>")


def test_text_of_others_is_never_markup_in_an_e_mail(smtp: MailServer) -> None:
    acme = factories.tenant()
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7|add:7 }}"
    channel = email(acme, smtp, name=evil[:60])
    due(channel, subject=evil, body_text=evil, payload={"url": "javascript:alert(1)"})

    deliver.run(context(acme))

    html = smtp.taken[0][1].get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert "<script" not in html
    assert "<img" not in html
    assert "javascript:" not in html
    assert "{{ 7|add:7 }}" in html


def test_without_a_host_the_installations_own_server_is_used() -> None:
    acme = factories.tenant()
    channel = email(acme)
    channel.config = {}
    channel.save()
    due(channel)

    outcome = deliver.run(context(acme))

    assert outcome.changed == 1
    assert [one.to for one in mail.outbox] == [["anna@example.com"]]


def test_without_any_server_the_channel_says_so(settings: Any) -> None:
    settings.MAILERS = {}
    acme = factories.tenant()
    channel = email(acme)
    channel.config = {}
    channel.save()
    row = due(channel)

    deliver.run(context(acme))

    row.refresh_from_db()
    channel.refresh_from_db()
    assert row.state == "pending"
    assert channel.last_error.startswith("the installation's mail server: ")


def test_a_refused_sender_is_a_fault_of_the_channel(smtp: MailServer) -> None:
    smtp.senders["millrace@example.com"] = "553 5.7.1 sender not owned"
    acme = factories.tenant()
    channel = email(acme, smtp)
    row = due(channel)

    outcome = deliver.run(context(acme))

    channel.refresh_from_db()
    row.refresh_from_db()
    assert outcome.word == "failed"
    assert channel.consecutive_failures == 1
    assert channel.last_error.endswith(
        "refused the sender millrace@example.com: 553 5.7.1 sender not owned"
    )
    assert (row.state, row.attempts) == ("pending", 1)


@pytest.mark.parametrize(
    ("reply", "state"),
    [("452 4.2.2 mailbox full", "pending"), ("554 5.7.1 spam", "failed")],
)
def test_what_is_said_after_the_body_is_about_that_message(
    smtp: MailServer, reply: str, state: str
) -> None:
    smtp.data["anna@example.com"] = reply
    acme = factories.tenant()
    channel = email(acme, smtp)
    row, other = due(channel), due(channel, "boris@example.com")

    deliver.run(context(acme))

    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.state, other.state) == (state, "sent")
    assert row.last_error.startswith(reply[:9])


def test_a_message_too_large_is_not_a_fault_of_the_sender(smtp: MailServer) -> None:
    smtp.senders["millrace@example.com"] = "552 5.3.4 message too big"
    acme = factories.tenant()
    channel = email(acme, smtp)
    row = due(channel)

    deliver.run(context(acme))

    row.refresh_from_db()
    channel.refresh_from_db()
    assert (row.state, row.last_error) == ("failed", "552 5.3.4 message too big")
    assert channel.consecutive_failures == 0


def test_a_server_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel_module, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        acme = factories.tenant()
        channel = email(acme, config={"port": port})
        row = due(channel)

        outcome = deliver.run(context(acme))

    row.refresh_from_db()
    assert (
        outcome.error == f'email channel "ops": no answer from 127.0.0.1:{port} in time'
    )
    assert (row.state, row.attempts) == ("pending", 1)


@pytest.mark.parametrize(
    "config",
    [{"port": "many"}, {"security": "starttls"}, {"host": "no such host.invalid"}],
)
def test_a_configuration_that_cannot_be_used_stops_only_its_channel(
    smtp: MailServer, config: dict[str, Any]
) -> None:
    acme = factories.tenant()
    bad = email(acme, smtp, name="bad", config=config)
    row, good = due(bad), due(email(acme, smtp))

    deliver.run(context(acme))

    row.refresh_from_db()
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (row.state, good.state) == ("pending", "sent")
    assert bad.last_error


def test_the_password_is_used_and_never_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    password = "correct-horse-battery"
    acme = factories.tenant()
    with running(MailServer(password=password)) as server:
        channel = email(acme, server, secret=password, config={"user": "millrace"})
        due(channel)
        assert deliver.run(context(acme)).changed == 1
        server.password = "another"
        due(channel)
        deliver.run(context(acme))

    channel.refresh_from_db()
    assert "does not let this user in" in channel.last_error
    rows = [str(row) for row in Notification.objects.values()]
    assert password not in caplog.text + channel.last_error + "".join(rows)
    assert password not in repr(channel.endpoint())


def stored(text: str) -> str:
    """As it can reach a row: PostgreSQL keeps no NUL, and no database a lone surrogate."""
    without = text.replace("\udcd1", "\ufffd")
    return (
        without if connection.vendor == "sqlite" else without.replace("\x00", "\u2400")
    )
