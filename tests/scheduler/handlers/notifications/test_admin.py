"""Channels in the admin."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client

from audit import clock
from audit.models import Change
from scheduler.handlers.notifications.models import Channel
from tests import factories
from tests.scheduler.handlers.notifications.arrange import due, email, web
from tests.scheduler.handlers.notifications.mail_server import MailServer
from tests.scheduler.handlers.notifications.test_views import allow

pytestmark = pytest.mark.django_db

LIST = "/admin/notifications/channel/"
FORM = {
    "name": "ops",
    "is_enabled": "on",
    "config_host": "127.0.0.1",
    "config_port": "1",
    "config_from_address": "millrace@example.com",
}


@pytest.fixture
def acme() -> Any:
    return factories.tenant("acme")


@pytest.fixture
def anna(client: Client, acme: Any) -> Any:
    """Somebody of acme who may do everything with channels."""
    user = factories.member(
        acme, "administrator", username="anna", email="anna@example.com"
    )
    allow(
        user,
        "view_channel",
        "add_channel",
        "change_channel",
        "delete_channel",
        "test_channel",
    )
    client.force_login(user)
    return user


def page_of(client: Client, channel: Channel) -> str:
    answer = client.get(f"{LIST}{channel.pk}/change/")
    assert answer.status_code == 200
    return answer.content.decode()


def save(client: Client, channel: Channel, **values: Any) -> Any:
    return client.post(f"{LIST}{channel.pk}/change/", {**FORM, **values})


def test_a_channel_is_made_in_two_steps_for_ones_own_tenant_only(
    client: Client, anna: Any, acme: Any
) -> None:
    other = factories.tenant("granite")
    form = client.get(f"{LIST}add/").content.decode()
    assert "granite" not in form
    assert "slack" not in form.lower()

    refused = client.post(
        f"{LIST}add/", {"tenant": other.pk, "kind": "email", "name": "ops"}
    )
    assert refused.status_code == 200
    made = client.post(
        f"{LIST}add/", {"tenant": acme.pk, "kind": "email", "name": "ops"}
    )

    channel = Channel.objects.get()
    assert made["Location"] == f"{LIST}{channel.pk}/change/"
    assert channel.tenant_id == acme.pk
    assert 'name="config_host"' in page_of(client, channel)


def test_the_page_says_how_the_channel_is_doing(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(
        acme,
        consecutive_failures=3,
        last_error="mx:25 said 554 no",
        paused_until=clock.now() + clock.timedelta(minutes=5),
    )
    due(channel)
    page = page_of(client, channel)
    assert "3 of 5" in page
    assert "mx:25 said 554 no" in page
    assert "Paused" in page
    assert "Send test" in page


def test_saving_keeps_what_belongs_to_the_runs_and_writes_who_changed_what(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(acme, consecutive_failures=2, secret="correct-horse-battery")
    answer = save(client, channel, config_from_name="Ops")
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    channel.refresh_from_db()
    assert channel.config == {
        "host": "127.0.0.1",
        "port": 1,
        "from_address": "millrace@example.com",
        "from_name": "Ops",
    }
    assert channel.consecutive_failures == 2
    assert channel.secret == "correct-horse-battery"
    change = Change.objects.get()
    assert (change.who, change.verb, change.subject) == (
        "anna",
        "changed",
        "channel:ops",
    )
    assert change.old["config"].get("from_name") is None
    assert change.new["config"]["from_name"] == "Ops"


def test_the_password_is_never_shown_and_its_change_is_written_without_it(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(acme, secret="correct-horse-battery")
    page = page_of(client, channel)
    assert "correct-horse" not in page
    assert "tery" in page  # its last four

    save(client, channel, new_secret="another-long-password")
    channel.refresh_from_db()
    assert channel.secret == "another-long-password"
    change = Change.objects.get()
    assert change.new["sign_in"] == "replaced"
    assert "another-long" not in str(change.new) + str(change.old)

    save(client, channel, forget_secret="on")
    channel.refresh_from_db()
    assert not channel.has_secret()


def test_a_stored_password_does_not_go_to_another_server_unseen(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(acme, secret="correct-horse-battery")
    for moved in ({"config_host": "evil.example"}, {"config_port": "2"}):
        answer = save(client, channel, **moved)
        assert answer.status_code == 200
        assert "The server changed" in answer.content.decode()
    assert (
        save(
            client, channel, config_host="mx.example", new_secret="entered-again-now"
        ).status_code
        == 302
    )


@pytest.mark.parametrize(
    "values",
    [
        {"config_port": "70000"},
        {"config_port": "many"},
        {"config_from_address": "nobody"},
        {"config_reply_to": "a\r\nBcc: b"},
        {"config_security": "maybe"},
        {"name": ""},
    ],
)
def test_what_cannot_work_is_refused_beside_its_field(
    client: Client, anna: Any, acme: Any, values: dict[str, str]
) -> None:
    channel = email(acme)
    answer = save(client, channel, **values)
    assert answer.status_code == 200
    assert set(answer.context["adminform"].form.errors) == set(values)


def test_enabling_starts_with_a_clean_sheet(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(
        acme,
        is_enabled=False,
        consecutive_failures=5,
        disabled_reason="no",
        paused_until=clock.now(),
    )
    assert "Disabled" in page_of(client, channel)
    save(client, channel)
    channel.refresh_from_db()
    assert (
        channel.is_enabled,
        channel.consecutive_failures,
        channel.disabled_reason,
        channel.paused_until,
    ) == (True, 0, "", None)


def test_nothing_of_another_tenant_is_seen_or_touched(
    client: Client, anna: Any
) -> None:
    other = email(factories.tenant("granite"), name="theirs")
    assert "theirs" not in client.get(LIST).content.decode()
    for address in ("change/", "test/", "delete/", "history/"):
        assert client.get(f"{LIST}{other.pk}/{address}").status_code in {302, 403, 404}
    assert (
        client.post(
            f"{LIST}{other.pk}/test/", {"recipient": "a@example.com"}
        ).status_code
        == 404
    )
    assert not other.notifications.exists()


def test_a_channel_with_notifications_stays(
    client: Client, anna: Any, acme: Any
) -> None:
    used, unused = email(acme, name="used"), web(acme, name="unused")
    due(used)
    assert client.post(f"{LIST}{used.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.post(f"{LIST}{unused.pk}/delete/", {"post": "yes"}).status_code == 302
    assert [one.name for one in Channel.objects.all()] == ["used"]
    assert Change.objects.get().verb == "removed"


def test_send_test_says_what_the_other_side_answered(
    client: Client, anna: Any, acme: Any, smtp: MailServer
) -> None:
    smtp.replies["boris@example.com"] = "550 5.1.1 no such user"
    channel = email(acme, smtp)
    address = f"{LIST}{channel.pk}/test/"
    assert 'value="anna@example.com"' in client.get(address).content.decode()

    assert (
        "Taken"
        in client.post(address, {"recipient": "anna@example.com"}).content.decode()
    )
    assert (
        "550 5.1.1 no such user"
        in client.post(address, {"recipient": "boris@example.com"}).content.decode()
    )
    assert (
        "Nobody to send to" in client.post(address, {"recipient": " "}).content.decode()
    )
    assert smtp.recipients == ["anna@example.com"]


def test_who_may_not_test_is_refused_and_offered_nothing(
    client: Client, acme: Any
) -> None:
    viewer = factories.member(acme)
    allow(viewer, "view_channel")
    client.force_login(viewer)
    channel = email(acme, secret="correct-horse-battery")
    page = page_of(client, channel)
    assert "Send test" not in page
    assert "correct-horse" not in page
    assert (
        client.post(
            f"{LIST}{channel.pk}/test/", {"recipient": "a@example.com"}
        ).status_code
        == 403
    )


def test_a_list_of_fifty_costs_few_queries(
    client: Client, anna: Any, acme: Any, django_assert_max_num_queries: Any
) -> None:
    for number in range(50):
        email(acme, name=f"channel-{number}")
    with django_assert_max_num_queries(12):
        assert client.get(LIST).status_code == 200


def test_a_search_that_no_database_can_do_is_no_error(
    client: Client, anna: Any
) -> None:
    assert client.get(LIST, {"q": "a\x00b"}).status_code == 200


def test_a_channel_whose_secret_no_key_opens_still_has_its_page(
    client: Client, anna: Any, acme: Any
) -> None:
    channel = email(acme)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE notifications_channel SET secret = 'not of ours'")
    assert "cannot be read" in page_of(client, channel)
    assert client.get(LIST).status_code == 200
