"""The list of notifications, a page each, and a reader's own messages."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from audit import clock
from audit.clock import DatabaseNow
from scheduler.handlers.notifications.models import Notification, WebNotification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import due, email, web

pytestmark = pytest.mark.django_db

LIST = "/admin/notifications/notification/"
ACT = "/admin/notifications/notification/act/"
OWN = "/admin/notifications/webnotification/"
READ = "/admin/notifications/webnotification/read/"


def allow(user: Any, *codenames: str) -> None:
    found = Permission.objects.filter(
        content_type__app_label="notifications", codename__in=codenames
    )
    assert len(found) == len(codenames)
    user.user_permissions.add(*found)


@pytest.fixture
def acme() -> Any:
    return factories.tenant("acme")


@pytest.fixture
def anna(client: Client, acme: Any) -> Any:
    """An operator of acme, signed in."""
    user = factories.member(acme, username="anna")
    allow(user, "view_notification", "retry_notification", "suppress_notification")
    client.force_login(user)
    return user


def text(client: Client, address: str, **data: Any) -> str:
    answer = client.get(address, data)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_says_state_error_and_what_comes_next(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(acme)
    due(channel, subject="Waits", attempts=2, last_error="451 later")
    gone = due(channel, subject="Gone")
    Notification.objects.filter(pk=gone.pk).update(
        state="failed",
        next_attempt_at=None,
        finished_at=DatabaseNow(),
        last_error="550 5.1.1 no such user",
    )

    page = text(client, LIST)

    assert "Waiting to retry" in page
    assert "451 later" in page
    assert "with the next run" in page
    assert "550 5.1.1 no such user" in page
    assert "Retry selected" in page
    assert "2 notifications match" in page


def test_nothing_of_another_tenant_is_seen_or_touched(
    client: Client, anna: Any
) -> None:
    other = due(
        email(factories.tenant("granite"), name="theirs"), subject="Secret of granite"
    )

    assert "Secret of granite" not in text(client, LIST)
    assert "Secret of granite" not in text(client, LIST, tenant="granite")
    assert client.get(f"{LIST}{other.pk}/").status_code == 404
    client.post(ACT, {"do": "suppress", "id": [other.pk]})
    other.refresh_from_db()
    assert other.state == "pending"


def test_filters_combine_and_bad_values_are_refused_with_a_sentence(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(acme)
    due(channel, "anna@example.com", subject="One")
    due(channel, "boris@example.com", subject="Two")

    assert "Two" not in text(client, LIST, recipient="anna", state="pending")
    assert "No notification matches" in text(
        client, LIST, recipient="anna", state="failed"
    )
    assert "no moment" in text(client, LIST, since="whenever")
    for value in (
        "\x00",
        "\udcd1".encode("utf-8", "surrogatepass"),
        "%",
        "'",
        "a" * 5_000,
    ):
        text(client, LIST, text=value)
    text(client, LIST, older="nonsense", newer="2026")


def test_a_thousand_rows_cost_as_many_queries_as_one(
    client: Client, anna: Any, acme: Any, django_assert_max_num_queries: Any
) -> None:
    channel = email(acme)
    now = clock.now()
    Notification.objects.bulk_create(
        Notification(
            tenant=acme,
            channel=channel,
            recipient="a",
            dedupe_key=f"{n}",
            next_attempt_at=now,
            created_at=now,
        )
        for n in range(1_000)
    )
    with django_assert_max_num_queries(18):
        page = text(client, LIST)
    assert "1,000 notifications match" in page
    assert page.count('name="id"') == 50


def test_text_of_others_is_shown_as_text(client: Client, anna: Any, acme: Any) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7|add:7 }}"
    channel = email(acme, name="<b>ops")
    row = due(
        channel, evil, subject=evil, body_text=evil, body_html=evil, last_error=evil
    )
    for address in (LIST, f"{LIST}{row.pk}/"):
        page = text(client, address)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<b>ops" not in page


def test_retry_and_suppress_move_the_selected_rows_and_say_how_many(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(acme)
    rows = [due(channel) for _ in range(3)]
    Notification.objects.filter(pk=rows[0].pk).update(
        state="sent", next_attempt_at=None, finished_at=DatabaseNow()
    )

    answer = client.post(
        ACT,
        {
            "do": "suppress",
            "id": [row.pk for row in rows],
            "why": "test",
            "next": f"{LIST}?state=pending",
        },
        follow=True,
    )

    said = [str(message) for message in answer.context["messages"]]
    assert said == [
        "2\u00a0notifications will not be sent.",
        "1\u00a0notification left as it was: sent, being sent, or that already.",
    ]
    assert answer.redirect_chain == [(f"{LIST}?state=pending", 302)]
    client.post(ACT, {"do": "retry", "id": [rows[1].pk]})
    assert list(
        Notification.objects.order_by("pk").values_list("state", flat=True)
    ) == ["sent", "pending", "suppressed"]


def test_the_page_of_a_message_that_died_on_its_way_offers_what_can_be_done(
    client: Client, anna: Any, acme: Any
) -> None:
    row = due(email(acme, is_enabled=False))
    for minutes, offered in ((1, False), (-1, True)):
        until = clock.now() + timedelta(minutes=minutes)
        Notification.objects.filter(pk=row.pk).update(
            state="sending", claimed_until=until, next_attempt_at=until
        )
        page = text(client, f"{LIST}{row.pk}/")
        assert ('value="retry"' in page, 'value="suppress"' in page) == (
            offered,
            offered,
        )


@pytest.mark.parametrize(
    "next_page", ["//evil.example/", "https://evil.example/", "javascript:alert(1)"]
)
def test_an_action_never_leads_to_another_site(
    client: Client, anna: Any, next_page: str
) -> None:
    assert client.post(ACT, {"do": "retry", "next": next_page})["Location"] == LIST


@pytest.mark.parametrize("ids", [["x"], ["-1"], ["9" * 30], ["\u0661"], []])
def test_ids_that_are_none_move_nothing(
    client: Client, anna: Any, ids: list[str]
) -> None:
    assert client.post(ACT, {"do": "retry", "id": ids}).status_code == 302


def test_who_may_only_look_is_offered_nothing_and_refused(
    client: Client, acme: Any
) -> None:
    viewer = factories.member(acme)
    allow(viewer, "view_notification")
    client.force_login(viewer)
    row = due(email(acme))
    assert "Retry selected" not in text(client, LIST)
    assert "Suppress" not in text(client, f"{LIST}{row.pk}/")
    assert client.post(ACT, {"do": "retry", "id": [row.pk]}).status_code == 403
    client.force_login(factories.member(acme))
    assert client.get(LIST).status_code == 403
    assert client.get(f"{LIST}{row.pk}/").status_code == 403


def test_actions_are_posts_and_verbs_are_known(client: Client, anna: Any) -> None:
    assert client.get(ACT).status_code == 405
    assert client.post(ACT, {"do": "delete"}).status_code == 404
    assert client.get(READ).status_code == 405


def message(user: Any, tenant: Any, **values: Any) -> WebNotification:
    row = due(web(tenant, name=clock.uuid7().hex))
    given = {
        "tenant": tenant,
        "user": user,
        "notification": row,
        "title": "Look",
        "created_at": clock.now(),
    }
    return WebNotification.objects.create(**{**given, **values})


def test_everybody_reads_his_own_messages_and_no_others(
    client: Client, acme: Any
) -> None:
    anna = factories.member(acme)  # no permission at all
    mine = message(anna, acme, title="For anna", url="/admin/x/")
    theirs = message(factories.member(acme), acme, title="For another")
    client.force_login(anna)

    page = text(client, OWN)
    assert "For anna" in page
    assert "For another" not in page

    assert client.post(READ, {"id": theirs.pk}).status_code == 404
    assert client.post(READ, {"id": mine.pk, "follow": "1"})["Location"] == "/admin/x/"
    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert mine.read_at
    assert theirs.read_at is None


def test_all_are_read_at_once(client: Client, acme: Any) -> None:
    anna = factories.member(acme)
    for _ in range(3):
        message(anna, acme)
    client.force_login(anna)
    assert "Mark all as read" in text(client, OWN)
    assert client.post(READ)["Location"] == OWN
    assert not WebNotification.objects.unread().exists()
    assert "Mark all as read" not in text(client, OWN)


def test_an_empty_list_says_what_would_stand_there(client: Client, acme: Any) -> None:
    client.force_login(factories.member(acme))
    assert "Nothing to read" in text(client, OWN)


def test_who_is_not_signed_in_is_asked_to(client: Client) -> None:
    for address in (LIST, OWN):
        assert client.get(address).status_code == 302
