"""The count in the header of every page."""

import pytest
from django.test import Client

from audit import clock
from scheduler.handlers.notifications.models import Notification, WebNotification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import due, web

pytestmark = pytest.mark.django_db


def unread(user: object, tenant: object, count: int) -> None:
    channel = web(tenant)  # type: ignore[arg-type]
    now = clock.now()
    rows = [
        Notification(
            tenant=tenant,
            channel=channel,
            recipient="x",
            dedupe_key=f"{channel.pk}-{n}",
            next_attempt_at=now,
            created_at=now,
        )
        for n in range(count)
    ]
    made = Notification.objects.bulk_create(rows)
    WebNotification.objects.bulk_create(
        WebNotification(
            tenant=tenant, user=user, notification=row, title="x", created_at=now
        )
        for row in made
    )


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "none unread"), (3, "3 unread"), (99, "99 unread"), (120, "99+ unread")],
)
def test_every_page_says_how_much_is_unread(
    client: Client, count: int, shown: str
) -> None:
    acme = factories.tenant()
    anna = factories.member(acme)
    unread(anna, acme, count)
    unread(factories.member(acme), factories.tenant(), 1)
    client.force_login(anna)

    page = client.get("/admin/notifications/webnotification/").content.decode()

    assert f"Notifications, {shown}" in page


def test_what_a_tenant_said_that_one_has_left_is_not_counted(client: Client) -> None:
    acme = factories.tenant()
    anna = factories.member(factories.tenant())
    unread(anna, acme, 2)
    client.force_login(anna)
    assert (
        "none unread"
        in client.get("/admin/notifications/webnotification/").content.decode()
    )


def test_the_sign_in_page_asks_nothing(
    client: Client, django_assert_num_queries: object
) -> None:
    due(web(factories.tenant()))
    assert client.get("/admin/login/").status_code == 200
