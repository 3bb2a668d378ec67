"""How other code tells people something."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from audit import clock, text
from scheduler.handlers.notifications import deliver
from scheduler.handlers.notifications.models import (
    Channel,
    Notification,
    WebNotification,
)
from scheduler.handlers.notifications.notify import admins_of, notify, notify_admins
from tests import factories
from tests.scheduler.handlers.notifications.arrange import context, email
from workqueue.models import Membership

pytestmark = pytest.mark.django_db


def tell(channel: Channel, **values: Any) -> None:
    notify(
        channel,
        **{
            "recipient": "anna@example.com",
            "subject": "Hello",
            "dedupe_key": "one",
            **values,
        },
    )


def test_a_notification_waits_for_the_next_run_of_the_channels_tenant() -> None:
    channel = email(factories.tenant())
    tell(channel, body_text="How are you?", payload={"url": "/admin/"}, event_id=7)

    row = Notification.objects.get()
    assert (row.tenant_id, row.channel_id, row.event_id) == (
        channel.tenant_id,
        channel.pk,
        7,
    )
    assert (row.state, row.attempts, row.payload) == ("pending", 0, {"url": "/admin/"})
    assert row.next_attempt_at is not None
    assert row.next_attempt_at <= clock.now() + timedelta(seconds=1)


def test_telling_twice_makes_one_and_another_tenant_may_use_the_same_key() -> None:
    channel, other = email(factories.tenant()), email(factories.tenant())
    tell(channel)
    tell(channel, subject="Hello again")
    tell(other)

    assert Notification.objects.filter(channel=channel).get().subject == "Hello"
    assert Notification.objects.count() == 2


def test_what_is_rolled_back_was_never_said() -> None:
    channel = email(factories.tenant())

    with transaction.atomic():
        tell(channel)
        transaction.set_rollback(True)
    assert not Notification.objects.exists()


def test_a_muted_one_is_visible_and_never_due() -> None:
    tell(email(factories.tenant()), muted=True)
    row = Notification.objects.get()
    assert (row.state, row.next_attempt_at) == ("suppressed", None)
    assert row.finished_at


@pytest.mark.parametrize("bad", ["a\x00b", "a\udcd1b", "x" * 100_000])
def test_no_text_breaks_the_callers_transaction(bad: str) -> None:
    channel = email(factories.tenant())
    with transaction.atomic():
        tell(
            channel,
            recipient=bad,
            subject=bad,
            body_text=bad,
            body_html=bad,
            dedupe_key=bad,
            payload={"context": {"a": bad}},
        )
    row = Notification.objects.get()
    assert len(row.dedupe_key) <= 200
    assert "\x00" not in row.subject + row.body_text


def test_long_keys_that_differ_only_at_the_end_stay_two() -> None:
    channel = email(factories.tenant())
    tell(channel, dedupe_key="k" * 500 + "1")
    tell(channel, dedupe_key="k" * 500 + "2")
    assert Notification.objects.count() == 2


def test_the_tenants_own_administrators_are_told() -> None:
    acme, granite = factories.tenant(), factories.tenant()
    one = factories.member(acme, Membership.Role.ADMINISTRATOR)
    two = factories.member(acme, Membership.Role.ADMINISTRATOR)
    factories.member(acme, Membership.Role.OPERATOR)
    factories.member(acme, Membership.Role.ADMINISTRATOR, is_active=False)
    factories.member(granite, Membership.Role.ADMINISTRATOR)
    factories.superuser()

    for _ in range(2):
        notify_admins(acme, title="Look", body="here", url="/admin/", dedupe_key="look")

    rows = Notification.objects.order_by("pk")
    assert [row.recipient for row in rows] == [one.username, two.username]
    assert {row.channel.kind for row in rows} == {"web"}
    assert {row.tenant_id for row in rows} == {acme.pk}


def test_where_a_tenant_has_no_administrator_the_platforms_are_told() -> None:
    acme = factories.tenant()
    chief = factories.superuser()
    staff = factories.member(factories.platform(), Membership.Role.ADMINISTRATOR)
    factories.member(factories.platform(), Membership.Role.VIEWER)
    assert {user.pk for user in admins_of(acme)} == {chief.pk, staff.pk}


@pytest.mark.parametrize(
    "there",
    [
        {"name": "admins", "kind": "email"},
        {"name": "admins", "kind": "web", "is_enabled": False},
        {"name": "bell", "kind": "web", "is_enabled": False},
    ],
)
def test_administrators_are_told_whatever_channels_there_are(
    there: dict[str, Any],
) -> None:
    acme = factories.tenant()
    admin = factories.member(acme, Membership.Role.ADMINISTRATOR)
    Channel.objects.create(tenant=acme, **there)

    for number in range(2):
        notify_admins(acme, title="Look", dedupe_key=f"look-{number}")

    assert {row.channel.kind for row in Notification.objects.all()} == {"web"}
    assert Channel.objects.filter(tenant=acme).count() == 2
    deliver.run(context(acme))
    assert WebNotification.objects.filter(user=admin).count() == 2


def test_what_leads_a_message_somewhere_is_never_masked() -> None:
    text.register_secret("margarethe-of-acme")
    channel = email(factories.tenant())
    payload = {
        "reply_to": "margarethe-of-acme@example.com",
        "template": "margarethe-of-acme/x",
    }
    tell(
        channel,
        recipient="margarethe-of-acme",
        subject="margarethe-of-acme",
        dedupe_key="of-margarethe-of-acme",
        payload={**payload, "context": {"said": "margarethe-of-acme"}},
    )

    row = Notification.objects.get()
    assert (row.recipient, row.dedupe_key) == (
        "margarethe-of-acme",
        "of-margarethe-of-acme",
    )
    assert {name: row.payload[name] for name in payload} == payload
    assert "margarethe-of-acme" not in row.subject + row.payload["context"]["said"]


def test_a_web_channel_that_is_there_is_used() -> None:
    acme = factories.tenant()
    factories.member(acme, Membership.Role.ADMINISTRATOR)
    mine = Channel.objects.create(tenant=acme, name="bell", kind="web")
    notify_admins(acme, title="Look", dedupe_key="look")
    assert Notification.objects.get().channel_id == mine.pk
