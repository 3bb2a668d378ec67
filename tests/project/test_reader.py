"""A reader's own way of being told times."""

import pytest
from django.urls import reverse

from audit import clock
from project import reader
from tests import factories
from tests.screens import run, signed_in

pytestmark = [pytest.mark.once, pytest.mark.django_db]


@pytest.fixture
def operator():
    operator = signed_in(factories.superuser())
    run(
        factories.tenant("acme"),
        finished_at=clock.now().replace(hour=12, minute=30, second=15),
    )
    return operator


def page(operator):
    return operator.get(reverse("admin:runs")).content.decode()


def test_times_are_ages_in_the_sites_zone_until_a_reader_asks_otherwise(operator):
    said = page(operator)
    assert "UTC, relative</option>" in said
    assert (
        ">today 12:30:15</time>"
        not in said.partition("<tbody>")[2].partition("</tbody>")[0]
    )


def test_a_reader_who_wants_exact_times_gets_them_in_the_zone_he_chose(operator):
    operator.cookies[reader.ZONE] = "Asia/Tokyo"
    operator.cookies[reader.TIMES] = reader.EXACT
    rows = page(operator).partition("<tbody>")[2].partition("</tbody>")[0]
    assert "21:30:15</time>" in rows
    assert "12:30:15 UTC" in rows  # what the pointer shows


def test_utc_is_one_choice_away_and_keeps_the_zone(operator):
    operator.cookies[reader.ZONE] = "Asia/Tokyo"
    operator.cookies[reader.TIMES] = reader.UTC
    said = page(operator)
    assert "12:30:15</time>" in said
    assert "Asia/Tokyo, exact</option>" in said


@pytest.mark.parametrize("zone", ["Mars/Base", "../../etc/passwd", "\x00", "x" * 4000])
def test_a_zone_that_is_none_is_the_sites(operator, zone):
    operator.cookies[reader.ZONE] = zone
    operator.cookies[reader.TIMES] = "sideways"
    assert "UTC, relative</option>" in page(operator)


def test_the_next_request_is_not_told_times_as_the_one_before(operator):
    operator.cookies[reader.ZONE] = "Asia/Tokyo"
    operator.cookies[reader.TIMES] = reader.EXACT
    page(operator)
    operator.cookies.clear()
    assert "Asia/Tokyo" not in operator.get(reverse("admin:login")).content.decode()
