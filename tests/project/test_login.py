"""Signing in: refusals in the house's words, and nothing that tells which part was wrong."""

import threading
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.conf import settings as configured
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse

from audit import clock
from audit.models import Change
from project import login
from tests import factories, screens

pytestmark = pytest.mark.django_db

ADDRESS = reverse("admin:login")
REFUSED = "That user name and password do not match an account that may sign in here."


@pytest.mark.parametrize(
    ("name", "password"), [("operator", "wrong"), ("nobody", "password")]
)
def test_a_wrong_name_and_a_wrong_password_are_refused_alike(client, name, password):
    factories.superuser("operator")
    text = client.post(
        ADDRESS, {"username": name, "password": password}
    ).content.decode()
    assert REFUSED in text
    assert "<title>Error: Sign in" in text


def test_an_account_that_is_no_staff_is_refused_in_the_same_words(client):
    factories.user("visitor", is_staff=False)
    text = client.post(
        ADDRESS, {"username": "visitor", "password": "password"}
    ).content.decode()
    assert REFUSED in text or "may sign in here" in text


def test_an_empty_form_says_what_to_enter(client):
    assert b"Enter a user name and a password." in client.post(ADDRESS, {}).content


def test_the_right_password_leads_to_the_page_that_was_asked_for(client):
    factories.superuser("operator")
    there = reverse("admin:ticks")
    response = client.post(
        ADDRESS, {"username": "operator", "password": "password", "next": there}
    )
    assert response["Location"] == there


def test_a_way_out_to_another_site_is_not_taken(client):
    factories.superuser("operator")
    response = client.post(
        ADDRESS,
        {
            "username": "operator",
            "password": "password",
            "next": "https://evil.example/",
        },
    )
    assert "evil" not in response["Location"]


# --- guessing is slowed

LOCKED = "Too many wrong passwords for this user name from your address."
WRONG = "wrong"
LIMIT = configured.AXES_FAILURE_LIMIT


def guess(name: str, password: str = WRONG, address: str = "203.0.113.7", **more: str):
    data = {"username": name, "password": password}
    return Client().post(ADDRESS, data, REMOTE_ADDR=address, **more)


def test_after_five_wrong_passwords_even_the_right_one_is_refused_for_a_while():
    factories.superuser("operator")
    answers = [guess("operator", HTTP_USER_AGENT=f"browser {n}") for n in range(LIMIT)]
    assert [each.status_code for each in answers] == [200] * (LIMIT - 1) + [429]
    refused = guess("operator", "password", HTTP_USER_AGENT="another browser")
    assert refused.status_code == 429
    assert LOCKED in refused.content.decode()
    assert refused["Retry-After"] == "900"
    assert "_auth_user_id" not in refused.wsgi_request.session
    # It ends by itself, and trying on during the lock does not make it longer.
    AccessAttempt.objects.update(attempt_time=clock.now() - timedelta(minutes=15))
    assert guess("operator", "password").status_code == 302
    assert not AccessAttempt.objects.exists()


def test_an_attacker_locks_out_himself_and_not_the_account():
    factories.superuser("operator")
    for _ in range(LIMIT + 1):
        guess("operator")
    assert guess("operator", "password", "203.0.113.8").status_code == 302
    assert guess("somebody", "password", "203.0.113.7").status_code == 200


def test_a_right_password_forgets_the_wrong_ones():
    factories.superuser("operator")
    for _ in range(3):
        for _ in range(LIMIT - 1):
            assert guess("operator").status_code == 200
        assert guess("operator", "password").status_code == 302


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("\x00operator", "x"),
        ("x" * 100_000, "x"),
        ("\u202eoperator", "x" * 1_000_000),
        ("<script>alert(1)</script>", "\x00"),
        ("", ""),
    ],
)
def test_whatever_is_typed_is_a_refusal_and_nothing_worse(name: str, password: str):
    for _ in range(LIMIT + 2):
        answer = guess(name, password, HTTP_USER_AGENT="<script>\u00e9" * 100)
        assert answer.status_code in (200, 429)
        assert b"<script>alert" not in answer.content
    boss = screens.signed_in(factories.superuser("boss"))
    assert boss.get("/admin/axes/accessattempt/").status_code == 200


@pytest.mark.parametrize(
    ("proxies", "remote", "forwarded", "found"),
    [
        (0, "203.0.113.7", "198.51.100.1", "203.0.113.7"),
        (1, "10.0.0.1", "198.51.100.1", "198.51.100.1"),
        # What the client wrote himself stands to the left of what our proxy added.
        (1, "10.0.0.1", "9.9.9.9, 198.51.100.1", "198.51.100.1"),
        (2, "10.0.0.1", "9.9.9.9, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        (2, "10.0.0.1", "198.51.100.1", "10.0.0.1"),
        (1, "10.0.0.1", "", "10.0.0.1"),
        (1, "10.0.0.1", "<script>", None),
        (0, "", "", None),
        (0, "::ffff:203.0.113.7", "", "203.0.113.7"),
        (0, "2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::"),
    ],
)
def test_the_address_is_what_our_own_proxies_say(
    settings, proxies: int, remote: str, forwarded: str, found: str | None
):
    settings.TRUSTED_PROXIES = proxies
    more = {"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}
    request = RequestFactory().get("/", REMOTE_ADDR=remote, **more)
    assert login.client_address(request) == found


def test_the_platforms_administrators_see_locks_and_lift_them():
    factories.superuser("operator")
    for _ in range(LIMIT):
        guess("operator")
    carl = factories.member(factories.platform(), "administrator", username="carl")
    carl.groups.add(Group.objects.get(name="Platform administrator"))
    client, row = screens.signed_in(carl), AccessAttempt.objects.get()
    html = client.get("/admin/axes/accessattempt/").content.decode()
    assert "operator" in html
    assert "Locked" in html
    assert "203.0.113.7" in html
    assert client.get(f"/admin/axes/accessattempt/{row.pk}/change/").status_code == 200
    client.post(f"/admin/axes/accessattempt/{row.pk}/delete/", {"post": "yes"})
    assert guess("operator", "password").status_code == 302
    told = Change.objects.get()
    assert (told.who, told.verb) == ("carl", "lifted")
    assert told.old == {"user": "operator", "address": "203.0.113.7"}


def test_a_tenants_staff_learns_nothing_of_locks():
    guess("operator")
    anna = factories.member(factories.tenant("acme"), "administrator")
    anna.groups.add(Group.objects.get(name="Platform administrator"))
    client, row = screens.signed_in(anna), AccessAttempt.objects.get()
    for address in ("", f"{row.pk}/change/", f"{row.pk}/delete/", f"{row.pk}/history/"):
        answer = client.get(f"/admin/axes/accessattempt/{address}")
        assert answer.status_code in (403, 404)
    assert "Sign-in locks" not in client.get("/admin/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_processes_that_are_asked_at_once_count_together():
    """Counted in the database: another process, or another replica, knows as much."""
    factories.superuser("operator")

    def guesses() -> None:
        for _ in range(LIMIT):
            guess("operator")
        connection.close()

    threads = [threading.Thread(target=guesses) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert guess("operator", "password").status_code == 429
