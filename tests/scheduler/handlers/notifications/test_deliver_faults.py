"""notifications.deliver when something fails: what may not happen then."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from audit import clock
from scheduler.handlers.notifications import deliver, sql
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.channels import email as channel_module
from scheduler.handlers.notifications.models import Channel, Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import (
    FakeModule,
    context,
    due,
    email,
    make_due,
    tenants_due,
    web,
)
from tests.scheduler.handlers.notifications.mail_server import MailServer, running

pytestmark = pytest.mark.django_db


# --- what may not happen


def test_no_transaction_is_open_while_the_network_is_used(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> None:
    seen: list[bool] = []
    module = FakeModule(lambda _: seen.append(connection.in_atomic_block) or "id")
    monkeypatch.setitem(border.MODULES, "fake", "fake")
    monkeypatch.setattr(border, "import_module", lambda _: module)
    acme = factories.tenant()
    due(Channel.objects.create(tenant=acme, name="ops", kind="fake"))

    deliver.run(context(acme))

    assert seen == [False]


def test_a_failed_write_ends_the_run_so_that_at_most_one_message_repeats(
    smtp: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = factories.tenant()
    channel = email(acme, smtp)
    rows = [due(channel, f"r{number}@example.com") for number in range(5)]
    real = Notification.sent

    def crash(row: Notification, provider_id: str) -> bool:
        if len(smtp.taken) == 3:
            raise ConnectionAbortedError("the process dies here")
        return real(row, provider_id)

    with monkeypatch.context() as patch:
        patch.setattr(Notification, "sent", crash)
        with pytest.raises(ConnectionAbortedError):
            deliver.run(context(acme))
    assert len(smtp.taken) == 3

    Notification.objects.filter(state="sending").update(
        next_attempt_at=clock.now() - timedelta(seconds=1)
    )  # six minutes later
    deliver.run(context(acme))

    assert set(Notification.objects.values_list("state", flat=True)) == {"sent"}
    counts = {row.recipient: smtp.recipients.count(row.recipient) for row in rows}
    assert sorted(counts.values()) == [1, 1, 1, 1, 2]
    ids = [mail["Message-ID"] for to, mail in smtp.taken if to == ["r2@example.com"]]
    assert len(ids) == 2
    assert len(set(ids)) == 1  # the receiver can drop the repeat by it


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_after_sending_repeats_that_one_message_only(
    smtp: MailServer, spawn: Any
) -> None:
    acme = factories.tenant()
    channel = email(acme, smtp)
    rows = [due(channel, f"r{number}@example.com") for number in range(5)]
    factories.item(
        acme, handler="notifications.deliver", tenant_slug=acme.slug, trigger="slot"
    )
    workers: list[Any] = []

    def kill(recipient: str) -> None:
        if recipient == "r2@example.com" and not gone.is_set():
            workers[0].popen.kill()
            gone.set()

    gone = threading.Event()
    smtp.after = kill
    workers.append(spawn("runworker"))
    assert gone.wait(60), "the worker never sent the third message"
    workers[0].popen.wait(10)
    states = Notification.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["sent", "sent", "sending", "sending", "sending"]

    with clock.at(clock.now() + sql.HELD + timedelta(seconds=1)):
        deliver.run(context(acme))

    counts = [smtp.recipients.count(row.recipient) for row in rows]
    assert counts == [1, 1, 2, 1, 1]
    assert set(Notification.objects.values_list("state", flat=True)) == {"sent"}


def test_a_fault_of_one_message_never_stops_the_others(
    smtp: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    acme = factories.tenant()
    channel = email(acme, smtp)
    bad = due(channel, payload={"template": "email/message", "context": 5})
    wrong = due(channel, payload=["not an object"])
    good = due(channel)

    outcome = deliver.run(context(acme))

    assert (outcome.changed, outcome.failed) == (1, 2)
    for row in (bad, wrong, good):
        row.refresh_from_db()
    assert (bad.state, bad.last_error) == (
        "failed",
        "payload.context must be an object",
    )
    assert (wrong.state, wrong.last_error) == ("failed", "payload must be an object")
    assert good.state == "sent"


def test_an_unexpected_fault_is_counted_once_with_its_traceback_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = FakeModule(lambda message: 1 / (message.recipient != "bad") and "id")
    monkeypatch.setitem(border.MODULES, "fake", "fake")
    monkeypatch.setattr(border, "import_module", lambda _: module)
    acme = factories.tenant()
    channel = Channel.objects.create(tenant=acme, name="ops", kind="fake")
    rows = [due(channel, name) for name in ("bad", "bad", "good")]

    outcome = deliver.run(context(acme))

    assert (outcome.seen, outcome.changed, outcome.failed) == (3, 1, 2)
    assert caplog.text.count("Traceback") == 1
    rows[0].refresh_from_db()
    assert (rows[0].state, rows[0].attempts) == ("pending", 1)
    assert rows[0].last_error == "ZeroDivisionError: division by zero"


def test_after_eight_attempts_a_message_is_failed_for_good(smtp: MailServer) -> None:
    acme = factories.tenant()
    smtp.replies["anna@example.com"] = "451 4.3.0 try again later"
    row = due(email(acme, smtp))

    for attempt in range(1, 9):
        row.refresh_from_db()
        assert (row.state, row.attempts) == ("pending", attempt - 1)
        make_due(row)
        deliver.run(context(acme))

    row.refresh_from_db()
    assert (row.state, row.attempts) == ("failed", 8)
    assert row.last_error == "451 4.3.0 try again later"
    assert deliver.run(context(acme)).seen == 0


def test_a_wrong_password_five_times_disables_the_channel_and_keeps_the_messages() -> (
    None
):
    acme = factories.tenant()
    admin = factories.member(acme, "administrator")
    with running(MailServer(password="right")) as server:
        channel = email(
            acme, server, secret="wrong-password-1", config={"user": "millrace"}
        )
        row = due(channel)
        for _ in range(5):
            make_due(row)
            outcome = deliver.run(context(acme))
            assert outcome.word == "failed"
            assert "wrong-password-1" not in outcome.error

        channel.refresh_from_db()
        row.refresh_from_db()
        assert not channel.is_enabled
        assert channel.consecutive_failures == 5
        assert "does not let this user in: 535" in channel.disabled_reason
        assert row.state == "pending"

        told = Notification.objects.get(channel__kind="web")
        assert (told.recipient, told.tenant_id) == (admin.username, acme.pk)
        assert told.subject == 'Email channel "ops" is disabled'

        # Corrected and enabled again, what waited goes out.
        channel.secret, channel.is_enabled = "right", True
        channel.save()
        make_due(row)
        deliver.run(context(acme))
        row.refresh_from_db()
        assert row.state == "sent"
        channel.refresh_from_db()
        assert channel.consecutive_failures == 0


def test_the_process_that_drains_hands_the_rest_back_uncounted(
    smtp: MailServer,
) -> None:
    acme = factories.tenant()
    channel = email(acme, smtp)
    rows = [due(channel, f"r{number}@example.com") for number in range(4)]

    outcome = deliver.run(context(acme, stopping=lambda: len(smtp.taken) == 2))

    assert (outcome.changed, outcome.skipped, outcome.word) == (2, 2, "succeeded")
    for row in rows[2:]:
        row.refresh_from_db()
        assert (row.state, row.attempts, row.claimed_until) == ("pending", 0, None)


def test_near_its_time_limit_a_run_hands_the_rest_back(smtp: MailServer) -> None:
    acme = factories.tenant()
    row = due(email(acme, smtp))

    outcome = deliver.run(context(acme, deadline=clock.now() + timedelta(seconds=30)))

    row.refresh_from_db()
    assert (outcome.skipped, row.state, row.attempts) == (1, "pending", 0)
    assert not smtp.connections  # connecting may take its time as well


@pytest.mark.parametrize(
    "values",
    [
        {"config": {"host": "mail..example.com"}},
        {"config": {"host": "mail\x01.example.com"}},
        {"config": {"user": "millrace"}, "secret": "p\u00e4ssw\u00f6rd"},
        {"config": {"user": "m\u00fcller"}, "secret": "password"},
        {"config": {"port": 10**9}},
    ],
)
def test_what_a_channel_cannot_be_opened_with_stops_that_channel_only(
    values: dict[str, Any],
) -> None:
    acme = factories.tenant()
    with running(MailServer(password="right")) as server, running(MailServer()) as good:
        bad = email(acme, server, name="bad", **values)
        row, other = due(bad), due(email(acme, good))

        outcome = deliver.run(context(acme))

    assert (outcome.changed, outcome.failed) == (1, 1)
    row.refresh_from_db()
    other.refresh_from_db()
    bad.refresh_from_db()
    assert (row.state, row.attempts, other.state) == ("pending", 1, "sent")
    assert bad.last_error
    assert "\u00e4" not in bad.last_error  # not a letter of the password


def test_a_module_that_fails_on_opening_breaks_its_own_channel(
    smtp: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(endpoint: border.Endpoint) -> Any:
        if endpoint.name == "bad":
            raise ZeroDivisionError("no such luck")
        return opened(endpoint)

    opened = channel_module.opened
    monkeypatch.setattr(channel_module, "opened", fail)
    acme = factories.tenant()
    bad = email(acme, name="bad")
    due(bad)
    due(email(acme, smtp))

    outcome = deliver.run(context(acme))

    assert (outcome.changed, outcome.failed) == (1, 1)
    bad.refresh_from_db()
    assert bad.last_error == "it cannot be opened: ZeroDivisionError: no such luck"
    assert bad.consecutive_failures == 1


def test_one_dead_channel_does_not_keep_the_others_waiting(smtp: MailServer) -> None:
    acme = factories.tenant()
    due(email(acme, name="dead"))
    due(email(acme, smtp, name="alive"))

    outcome = deliver.run(context(acme))

    assert (outcome.changed, outcome.failed, outcome.word) == (1, 1, "partial")
    assert len(smtp.taken) == 1


def test_only_the_tenants_own_messages_are_sent(smtp: MailServer) -> None:
    acme, granite = factories.tenant(), factories.tenant()
    due(email(acme, smtp), "acme@example.com")
    other = due(email(granite, smtp), "granite@example.com")

    deliver.run(context(acme))

    assert smtp.recipients == ["acme@example.com"]
    other.refresh_from_db()
    assert other.state == "pending"


@pytest.mark.parametrize(
    "values", [{"is_enabled": False}, {"kind": "slack_api"}, {"paused_until": "later"}]
)
def test_what_cannot_be_used_now_is_neither_due_nor_sent(
    smtp: MailServer, values: dict[str, Any]
) -> None:
    acme = factories.tenant()
    if "paused_until" in values:
        values = {"paused_until": clock.now() + timedelta(minutes=1)}
    channel = email(acme, smtp)
    row = due(channel)
    Channel.objects.filter(pk=channel.pk).update(**values)

    outcome = deliver.run(context(acme))

    assert (outcome.seen, outcome.summary) == (0, "nothing due")
    assert acme.pk not in tenants_due()
    row.refresh_from_db()
    assert (row.state, row.attempts) == ("pending", 0)


def test_a_full_share_asks_to_run_again_at_once(
    smtp: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "BATCH", 4)
    acme = factories.tenant()
    ops, web_channel = email(acme, smtp), web(acme)
    for _ in range(3):
        due(ops)
    due(web_channel, factories.member(acme).username)

    first = deliver.run(context(acme))
    second = deliver.run(context(acme))

    assert (first.seen, first.again_in) == (3, timedelta())  # two of ops, one of web
    assert (second.seen, second.again_in) == (1, None)


def test_a_run_that_finds_nothing_says_so() -> None:
    outcome = deliver.run(context(factories.tenant()))
    assert (outcome.seen, outcome.summary, outcome.word) == (
        0,
        "nothing due",
        "succeeded",
    )
