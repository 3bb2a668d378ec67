"""Signing in: refusals in the house's words, and nothing that tells which part was wrong."""

import pytest
from django.urls import reverse

from tests import factories

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
