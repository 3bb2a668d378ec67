"""Texts that people write become values; what cannot is refused with what would be right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project import kinds

pytestmark = pytest.mark.once


@pytest.mark.parametrize("kind", kinds.KINDS)
@given(text=st.text(min_size=1))
def test_whatever_the_text_it_is_a_value_or_a_sentence(kind, text):
    sentence = "must be"
    try:
        kinds.KINDS[kind](text)
    except ValueError as problem:
        sentence = str(problem)
    assert sentence.startswith(("must be", "is no "))


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_number_is_itself(number):
    assert kinds.integer(str(number)) == number


@pytest.mark.parametrize("text", ["1.0", "1e3", "0x10", "1_000", "+1", "", "１"])  # noqa: RUF001
def test_what_only_looks_like_a_number_is_none(text):
    with pytest.raises(ValueError, match="must be a whole number"):
        kinds.integer(text)


@pytest.mark.parametrize(
    ("text", "value"), [("on", True), ("TRUE", True), ("0", False), ("No", False)]
)
def test_a_switch_has_a_few_words(text, value):
    assert kinds.switch(text) is value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("url", "http://exa mple.com"),
        ("url", "https://example.com/a\u00a0b"),
        ("hosts", "http://example.com"),
        ("hosts", "example.com, other.com:80"),
        ("sender", "Foo <bar"),
        ("sender", "a@b, c@d"),
        ("sender", "nobody"),
        ("fernet", ","),
    ],
)
def test_what_only_looks_like_an_address_is_none(kind, text):
    with pytest.raises(ValueError, match=r"^must be "):
        kinds.KINDS[kind](text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("hosts", ".example.com, [::1], 127.0.0.1, *"),
        ("sender", "Millrace <millrace@localhost>"),
        ("sender", "J\u00f6rg <joerg@b\u00fccher.example>"),
        ("sender", "ops@example.com"),
    ],
)
def test_what_is_an_address_is_one(kind, text):
    assert kinds.KINDS[kind](text)


def test_the_standard_ports_of_mail():
    ports = [
        kinds.email(f"{scheme}://host")["OPTIONS"]["port"]
        for scheme in kinds.EMAIL_SCHEMES
    ]
    assert ports == [25, 587, 465]
