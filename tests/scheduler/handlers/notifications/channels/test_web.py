"""The web channel: a row under the bell of one user."""

import pytest

from scheduler.handlers.notifications import deliver
from scheduler.handlers.notifications.models import Notification, WebNotification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import context, due, make_due, web
from workqueue.models import Membership

pytestmark = pytest.mark.django_db


def test_a_member_finds_the_message_in_the_admin() -> None:
    acme = factories.tenant()
    anna = factories.member(acme)
    due(
        web(acme),
        anna.username,
        subject="Look\nhere",
        body_text="Now",
        payload={"url": "/admin/x/"},
    )

    outcome = deliver.run(context(acme))

    assert (outcome.changed, outcome.failed) == (1, 0)
    found = WebNotification.objects.get()
    assert (found.user_id, found.tenant_id) == (anna.pk, acme.pk)
    assert (found.title, found.body, found.url, found.read_at) == (
        "Look here",
        "Now",
        "/admin/x/",
        None,
    )


def test_a_repeated_delivery_adds_nothing() -> None:
    acme = factories.tenant()
    row = due(web(acme), factories.member(acme).username)
    deliver.run(context(acme))
    Notification.objects.update(
        state="pending", sent_at=None, finished_at=None, next_attempt_at=row.created_at
    )
    make_due(row)

    outcome = deliver.run(context(acme))

    assert outcome.changed == 1
    assert WebNotification.objects.count() == 1


@pytest.mark.parametrize(
    "who", ["nobody", "a member of another tenant", "a member who left"]
)
def test_only_who_may_see_the_tenant_is_told(who: str) -> None:
    acme, granite = factories.tenant("acme"), factories.tenant()
    stranger = factories.member(granite)
    gone = factories.member(acme, is_active=False)
    name = {"nobody": "nobody", "a member of another tenant": stranger.username}.get(
        who, gone.username
    )
    row = due(web(acme), name)

    deliver.run(context(acme))

    row.refresh_from_db()
    assert row.state == "failed"
    assert row.last_error == f"“{name}” is no active user who may see tenant acme"
    assert not WebNotification.objects.exists()


def test_the_platforms_staff_may_be_told_of_any_tenant() -> None:
    acme = factories.tenant()
    staff = factories.user()
    Membership.objects.create(user=staff, tenant=factories.platform())
    channel = web(acme)
    due(channel, staff.username)
    due(channel, factories.superuser().username)

    assert deliver.run(context(acme)).changed == 2


def test_a_link_that_would_run_a_script_is_left_out() -> None:
    acme = factories.tenant()
    due(
        web(acme),
        factories.member(acme).username,
        payload={"url": "javascript:alert(1)"},
    )

    deliver.run(context(acme))

    assert WebNotification.objects.get().url == ""
