"""notifications.deliver, against a real SMTP server."""

import logging
import threading
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from audit import clock
from scheduler.handlers.notifications import back_off, deliver, send, sql
from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import Channel, Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import (
    context,
    due,
    email,
    make_due,
    web,
)
from tests.scheduler.handlers.notifications.mail_server import MailServer, running

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
    )  # two minutes later
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

    with clock.at(clock.now() + sql.LEASE + timedelta(seconds=1)):
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
    assert not smtp.taken


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


# --- arranging


def tenants_due() -> list[int]:
    return [tenant_id for (tenant_id,) in deliver.due(clock.now())]


class RateLimit:
    """Always asks for a pause."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, message: border.Message) -> str:
        raise border.RateLimited(pause=timedelta(seconds=self.seconds))


class FakeModule:
    """A module of a kind that is not built yet."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls = 0

    def opened(self, endpoint: border.Endpoint) -> Any:
        return nullcontext(self._deliver)

    def _deliver(self, message: border.Message) -> str:
        self.calls += 1
        return self.answer(message)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    back_off.chance.seed(7)
