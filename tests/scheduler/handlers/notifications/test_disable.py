"""A channel that nothing gets through."""

import pytest
from django.urls import reverse

from audit import clock
from audit.models import Event
from scheduler.handlers.notifications import disable
from scheduler.handlers.notifications.models import Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import email

pytestmark = pytest.mark.django_db


def test_the_fifth_failure_switches_it_off_and_tells_owners_and_the_world_once() -> (
    None
):
    acme = factories.tenant("acme")
    admin = factories.member(acme, "administrator")
    channel = email(acme)

    for _ in range(7):
        disable.after_failure(
            channel, error="mx:25 said 554 go away", claim_id=clock.uuid7()
        )

    channel.refresh_from_db()
    assert (channel.is_enabled, channel.disabled_reason) == (
        False,
        "mx:25 said 554 go away",
    )
    event = Event.objects.get(type="channel.disabled")
    assert (event.tenant, event.subject, event.severity) == (
        "acme",
        f"channel:{channel.pk}",
        3,
    )
    told = Notification.objects.get()
    assert told.recipient == admin.username
    assert told.payload == {
        "url": reverse("admin:notifications_channel_change", args=[channel.pk])
    }
    assert "554 go away" in told.body_text


def test_when_nobody_can_be_told_it_is_not_switched_off_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel = email(factories.tenant())

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(disable, "notify_admins", fail)
    for _ in range(4):
        disable.after_failure(channel, error="no", claim_id=clock.uuid7())
    with pytest.raises(RuntimeError):
        disable.after_failure(channel, error="no", claim_id=clock.uuid7())
    channel.refresh_from_db()
    assert channel.is_enabled
