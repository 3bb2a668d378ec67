"""Verbs and constraints of the domain's tables."""

import pytest
from django.db import IntegrityError, connection, transaction

from audit import clock
from audit.clock import DatabaseNow
from scheduler.handlers.notifications.models import (
    Channel,
    Notification,
    WebNotification,
)
from tests import factories
from tests.scheduler.handlers.notifications.arrange import due, email, web

pytestmark = pytest.mark.django_db


def set_state(row: Notification, state: str) -> None:
    live = state in {"pending", "sending"}
    Notification.objects.filter(pk=row.pk).update(
        state=state,
        next_attempt_at=DatabaseNow() if live else None,
        finished_at=None if live else DatabaseNow(),
    )
    row.refresh_from_db()


@pytest.mark.parametrize(
    ("state", "retried", "suppressed"),
    [
        ("pending", True, True),
        ("sending", False, False),
        ("sent", False, False),
        ("failed", True, True),
        ("suppressed", True, False),
    ],
)
def test_an_operators_verbs_move_only_what_may_move(
    state: str, retried: bool, suppressed: bool
) -> None:
    channel = email(factories.tenant())
    row = due(channel, attempts=8)
    set_state(row, state)
    assert row.retry() is retried
    row.refresh_from_db()
    if retried:
        assert (row.state, row.attempts, row.finished_at) == ("pending", 0, None)
    set_state(row, state)
    assert row.suppress() is suppressed
    row.refresh_from_db()
    if suppressed:
        assert (row.state, row.next_attempt_at) == ("suppressed", None)


@pytest.mark.parametrize(
    "values",
    [{"next_attempt_at": None}, {"state": "sent"}, {"finished_at": clock.now()}],
)
def test_the_database_refuses_a_live_row_without_a_time_and_a_terminal_one_with_one(
    values: dict[str, object],
) -> None:
    row = due(email(factories.tenant()))
    with pytest.raises(IntegrityError), transaction.atomic():
        Notification.objects.filter(pk=row.pk).update(**values)


def test_the_fifth_failure_in_a_row_disables_and_only_one_caller_is_told() -> None:
    channel = email(factories.tenant())
    assert [channel.broke("no") for _ in range(6)] == [
        False,
        False,
        False,
        False,
        True,
        False,
    ]
    channel.refresh_from_db()
    assert (channel.is_enabled, channel.disabled_reason) == (False, "no")


def test_a_success_in_between_ends_the_row_of_failures() -> None:
    channel = email(factories.tenant())
    for _ in range(4):
        channel.broke("no")
    channel.worked()
    assert not channel.broke("no")
    channel.refresh_from_db()
    assert (channel.is_enabled, channel.consecutive_failures) == (True, 1)


def test_a_secret_stands_encrypted_and_is_not_read_with_the_row() -> None:
    channel = email(factories.tenant(), secret="correct-horse-battery")
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM notifications_channel")
        [(stored,)] = cursor.fetchall()
    assert "correct-horse" not in stored
    found = Channel.objects.get(pk=channel.pk)
    assert "secret" in found.get_deferred_fields()
    assert found.has_secret()
    assert found.endpoint().secret == "correct-horse-battery"
    assert not email(factories.tenant()).has_secret()


def test_a_secret_that_no_key_opens_is_a_fault_of_its_channel_only() -> None:
    channel = email(factories.tenant())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE notifications_channel SET secret = 'not of ours'")
    endpoint = Channel.objects.get(pk=channel.pk).endpoint()
    assert endpoint.secret == ""
    assert "cannot be read" in endpoint.fault


def test_a_tenant_goes_with_all_its_rows() -> None:
    acme, granite = factories.tenant(), factories.tenant()
    for tenant in (acme, granite):
        row = due(web(tenant))
        WebNotification.objects.create(
            tenant=tenant,
            user=factories.user(),
            notification=row,
            title="x",
            created_at=clock.now(),
        )
    acme.delete()
    for model in (Channel, Notification, WebNotification):
        assert list(model.objects.values_list("tenant_id", flat=True)) == [granite.pk]


def test_reading_is_counted_once_and_keeps_its_first_time() -> None:
    acme = factories.tenant()
    anna = factories.member(acme)
    for _ in range(3):
        WebNotification.objects.create(
            tenant=acme,
            user=anna,
            notification=due(web(acme, name=clock.uuid7().hex)),
            title="x",
            created_at=clock.now(),
        )
    mine = WebNotification.objects.own(anna.pk, tenants=frozenset({acme.pk}))
    assert mine.unread().count() == 3
    assert mine.mark_read() == 3
    first = list(mine.values_list("read_at", flat=True))
    assert mine.mark_read() == 0
    assert list(mine.values_list("read_at", flat=True)) == first
    assert not WebNotification.objects.own(anna.pk, tenants=frozenset()).exists()
    assert WebNotification.objects.own(anna.pk, tenants=None).count() == 3
