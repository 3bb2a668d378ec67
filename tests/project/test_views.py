"""The preferences page."""

import pytest
from django.urls import reverse

from project import reader
from tests import factories
from tests.screens import HOSTILE, LIVE, signed_in

pytestmark = [pytest.mark.once, pytest.mark.django_db]


@pytest.fixture
def operator():
    return signed_in(factories.superuser())


def save(operator, **values):
    return operator.post(reverse("admin:preferences"), {"way": reader.AGO, **values})


def test_the_choice_is_kept_in_the_browser_and_leads_back(operator):
    answer = save(
        operator, zone="europe/berlin", way=reader.EXACT, next=reverse("admin:runs")
    )
    assert answer.url == reverse("admin:runs")
    assert operator.cookies[reader.ZONE].value == "Europe/Berlin"
    assert "Times in Europe/Berlin" in operator.get(answer.url).content.decode()


def test_going_back_to_the_defaults_forgets_the_cookies(operator):
    save(operator, zone="Europe/Berlin", way=reader.UTC)
    save(operator, zone="UTC", way=reader.AGO)
    assert operator.cookies[reader.ZONE].value == ""
    assert operator.cookies[reader.TIMES].value == ""


@pytest.mark.parametrize("zone", ["Mars", "../etc", "", HOSTILE])
def test_what_is_no_zone_is_refused_with_what_to_enter(operator, zone):
    answer = save(operator, zone=zone)
    said = answer.content.decode()
    assert answer.status_code == 422
    assert "such as Europe/Berlin or UTC" in said
    assert not any(
        live in said for live in LIVE[:-1]
    )  # his own field turns as he typed it


@pytest.mark.parametrize(
    "address", ["https://elsewhere.example/", "//elsewhere.example"]
)
def test_it_never_leads_to_another_host(operator, address):
    assert save(operator, zone="UTC", next=address).url == reverse("admin:preferences")


def test_it_is_for_those_who_are_signed_in(client):
    assert client.get(reverse("admin:preferences")).status_code == 302
