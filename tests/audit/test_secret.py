from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, models

from audit import secret, text

pytestmark = pytest.mark.once

ONE, TWO = Fernet.generate_key().decode(), Fernet.generate_key().decode()
VALUE = "xoxb-1234-abcdefgh"


class Holder:
    _meta = type("_meta", (), {"label": "tests.Holder"})


@pytest.fixture
def field(no_secrets: None, settings: Any) -> secret.EncryptedTextField:
    settings.FIELD_KEYS = [ONE]
    made = secret.EncryptedTextField()
    made.model, made.name = Holder, "token"  # type: ignore[assignment]
    return made


def test_the_database_gets_no_word_of_it(field: secret.EncryptedTextField):
    stored = field.get_prep_value(VALUE)
    assert VALUE not in stored
    assert field.from_db_value(stored) == VALUE


def test_what_was_read_is_masked_everywhere(field: secret.EncryptedTextField):
    stored = field.get_prep_value(VALUE)
    field.from_db_value(stored)
    assert text.gate(f"posting with {VALUE}") == "posting with ••••"


def test_a_new_key_in_front_reads_what_the_old_one_wrote(
    field: secret.EncryptedTextField, settings: Any
):
    stored = field.get_prep_value(VALUE)
    settings.FIELD_KEYS = [TWO, ONE]
    assert field.from_db_value(stored) == VALUE
    fresh = field.get_prep_value(VALUE)
    settings.FIELD_KEYS = [TWO]
    assert field.from_db_value(fresh) == VALUE


def test_a_lost_key_is_named_with_its_field(
    field: secret.EncryptedTextField, settings: Any
):
    stored = field.get_prep_value(VALUE)
    settings.FIELD_KEYS = [TWO]
    with pytest.raises(
        secret.UnreadableSecret, match=r"tests\.Holder\.token.*FIELD_KEY"
    ):
        field.from_db_value(stored)


def test_a_key_that_is_none_is_refused_in_words(
    field: secret.EncryptedTextField, settings: Any
):
    settings.FIELD_KEYS = ["too short"]
    with pytest.raises(ImproperlyConfigured, match="FIELD_KEY is no Fernet key"):
        field.get_prep_value(VALUE)


@pytest.mark.parametrize("empty", ["", None])
def test_nothing_stays_nothing(field: secret.EncryptedTextField, empty: str | None):
    assert field.get_prep_value(empty) == empty
    assert field.from_db_value(empty) == empty


@pytest.mark.parametrize(
    ("value", "shown"),
    [("xoxb-1234-abcdefgh", "••••efgh"), ("short", "••••"), ("", "••••")],
)
def test_a_secret_shows_its_end_where_that_gives_little_away(value: str, shown: str):
    assert secret.mask(value) == shown


def test_a_password_that_is_also_a_name_is_left_alone(no_secrets: None, settings: Any):
    settings.MAILERS = {
        "a": {"OPTIONS": {"username": "millrace", "password": "millrace"}},
        "b": {"OPTIONS": {"username": "millrace", "password": "a-real-password"}},
    }
    secret.register_settings()
    assert text.gate("millrace says a-real-password") == "millrace says ••••"


def test_it_is_a_text_column(field: secret.EncryptedTextField):
    assert field.db_type(connection) == models.TextField().db_type(connection)
