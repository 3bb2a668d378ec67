"""The first administrator, and the lines that lead there."""

import pytest
from django.contrib.auth.models import User

from project import private, welcome
from tests import factories

pytestmark = [pytest.mark.once, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.PRIVATE_FOLDER = tmp_path
    return tmp_path


def test_the_first_administrator_is_made_with_the_password_that_is_kept(folder):
    password = welcome.administrator()
    assert password == private.values(folder)["ADMINISTRATOR_PASSWORD"]
    one = User.objects.get(username="admin")
    assert one.is_superuser
    assert one.check_password(password)


def test_who_has_an_administrator_is_left_alone():
    factories.superuser("boss")
    assert welcome.administrator() is None
    assert not User.objects.filter(username="admin").exists()


def test_in_production_nobody_is_made(settings):
    settings.PRODUCTION = True
    assert welcome.administrator() is None
    assert not User.objects.exists()


def test_the_password_is_printed_once_and_then_only_where_it_is(folder):
    first = welcome.banner(password="hush", more={"E-mails": "there"})
    later = welcome.banner(password=None, more={})
    assert "hush" in first
    assert "E-mails" in first
    assert f"kept in {folder / private.NAME}" in later
