"""The form of a channel; how it behaves in the admin stands in test_admin."""

import pytest

from scheduler.handlers.notifications import forms
from tests import factories
from tests.scheduler.handlers.notifications.arrange import email

pytestmark = pytest.mark.django_db


def test_a_form_has_the_fields_of_its_kind_only() -> None:
    assert "config_host" in forms.form_for("email").base_fields
    assert not [
        name for name in forms.form_for("web").base_fields if name.startswith("config_")
    ]
    assert forms.config_fields("slack_webhook") == {}


def test_only_what_was_filled_in_is_stored() -> None:
    channel = email(factories.tenant())
    form = forms.form_for("email")(
        {"name": "ops", "config_port": "25", "config_host": " mx.example "},
        instance=channel,
    )
    assert form.is_valid(), form.errors
    assert form.config() == {"host": "mx.example", "port": 25}


@pytest.mark.parametrize(
    ("name", "entered"),
    [
        ("config_host", "mail..example.com"),
        ("config_user", "m\u00fcller"),
        ("new_secret", "p\u00e4ssw\u00f6rd"),
        ("new_secret", "a\nb"),
    ],
)
def test_what_cannot_be_sent_to_a_server_is_said_in_the_form(
    name: str, entered: str
) -> None:
    form = forms.form_for("email")(
        {"name": "ops", name: entered}, instance=email(factories.tenant())
    )
    assert list(form.errors) == [name]


def test_a_configuration_that_is_no_object_is_an_empty_one() -> None:
    channel = email(factories.tenant())
    channel.config = ["edited", "by", "SQL"]
    channel.save()
    form = forms.form_for("email")(instance=channel)
    assert form.initial["config_host"] is None


def test_the_stored_password_is_nowhere_in_the_form() -> None:
    channel = email(factories.tenant(), secret="correct-horse-battery")
    form = forms.form_for("email")(instance=channel)
    assert "correct-horse" not in form.as_p()
    assert "One is stored" in form.as_p()
