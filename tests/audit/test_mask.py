import json
import os
import subprocess
import sys
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit import mask
from audit.text import gate, register_secret

pytestmark = pytest.mark.once

VALUES = st.text(
    "abcdefABCDEF0123456789-_/+=%$&\"'é", min_size=mask.SHORTEST, max_size=60
)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("password=hunter22 ok", "password=•••• ok"),
        ("PGPASSWORD=hunter22", "PGPASSWORD=••••"),
        ("pwd: x", "pwd: ••••"),
        ('{"password": "a b", "x": 1}', '{"password": "••••", "x": 1}'),
        ("{'api_key': 'zzz'}", "{'api_key': '••••'}"),
        ('"secret": "a\\"b c", x', '"secret": "••••", x'),
        ('{\\"token\\": \\"abc d\\"}', '{\\"token\\": \\"••••\\"}'),
        ('password="left open', 'password="•••• open'),
        ("AWS_SECRET_ACCESS_KEY=abc/def+g", "AWS_SECRET_ACCESS_KEY=••••"),
        ("Authorization: Bearer abcdefgh.123 x", "Authorization: ••••"),
        ("Authorization: Basic dXNlcjpwdw==", "Authorization: ••••"),
        ("curl -H 'Authorization: Bearer abc' http://h", "curl -H 'Authorization: ••••' http://h"),
        ("got Bearer abcdefghijklm", "got Bearer ••••"),
        ("run --token abc --verbose", "run --token •••• --verbose"),
        ("postgres://user:p%40ss@host/db", "postgres://user:••••@host/db"),
        ("postgresql://user:p/ss@host/db", "postgresql://user:••••@host/db"),
        ("redis://:pw@host", "redis://:••••@host"),
        ("https://ada:pw@host/path", "https://ada:••••@host/path"),
    ],
)  # fmt: skip
def test_what_stands_under_a_telling_key_is_masked(given: str, kept: str):
    assert gate(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        "max_tokens=5, tokens: 12",
        "the key of the timetable: webhooks.retry",
        "http://host:80/path?who=a@b",
        "token=",
        "passed 3 of 4 checks",
        "monkey=banana",
        "author: Ada",
    ],
)
def test_what_only_looks_alike_is_left_alone(given: str):
    assert gate(given) == given


@given(VALUES, st.text("xyz \n\t", max_size=30), st.text("xyz \n\t", max_size=30))
def test_a_registered_value_is_masked_wherever_it_stands(
    value: str, before: str, after: str
):
    with pytest.MonkeyPatch.context() as patch:
        for name, empty in (("_values", ()), ("_short", ()), ("_grams", {})):
            patch.setattr(mask, name, empty)
        register_secret(value)
        for form in (value, quote(value), quote(value, safe=""), json.dumps(value)):
            assert form.strip('"') not in gate(f"{before}{form}{after}")


@given(
    st.text("abcdef0123456789", min_size=12, max_size=60),
    st.data(),
    st.sampled_from(["\n", "\n    ", "  \n"]),
)
def test_a_value_torn_by_a_line_break_is_masked(
    value: str, data: st.DataObject, tear: str
):
    with pytest.MonkeyPatch.context() as patch:
        for name, empty in (("_values", ()), ("_short", ()), ("_grams", {})):
            patch.setattr(mask, name, empty)
        register_secret(value)
        place = data.draw(st.integers(min_value=1, max_value=len(value) - 1))
        kept = gate(f"zz {value[:place]}{tear}{value[place:]} zz")
        assert kept == "zz ••••\n•••• zz"


def test_many_values_are_found_as_surely_as_few(no_secrets: None):
    values = [f"{number:06d}-{'abc' * (number % 5 + 1)}" for number in range(300)]
    for value in values:
        register_secret(value)
    for offset in range(9):
        for value in values:
            assert value not in gate("." * offset + value + "." * offset)


def test_short_values_are_found_among_many(no_secrets: None):
    for number in range(40):
        register_secret(f"{number:040d}")
    register_secret("qwerty")
    for offset in range(9):
        assert gate("." * offset + "qwerty") == "." * offset + "••••"


def test_values_too_short_to_hide_are_not_registered(no_secrets: None):
    register_secret("")
    register_secret("admin")
    assert gate("admin did it") == "admin did it"


def test_a_private_key_is_known_by_its_lines(no_secrets: None):
    register_secret(
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhki\nG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----"
    )
    assert gate("read G9w0BAQEFAASCBKcwggSj") == "read ••••"
    assert (
        gate("-----BEGIN PRIVATE KEY----- is missing")
        == "-----BEGIN PRIVATE KEY----- is missing"
    )


def test_a_value_inside_another_does_not_leave_the_rest_of_it(no_secrets: None):
    register_secret("abcdefgh")
    register_secret("abcdefgh-and-more")
    assert gate("x abcdefgh-and-more y") == "x •••• y"


def test_what_settings_keep_secret_is_masked_from_the_start():
    script = (
        "import django; django.setup(); from audit.text import gate;"
        "print(gate('could not connect with correct-horse-battery'));"
        "print(gate('key an-installations-own-secret-key-0001'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "DATABASE_URL": "postgresql://ada:correct-horse-battery@127.0.0.1:1/none",
            "SECRET_KEY": "an-installations-own-secret-key-0001",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == ["could not connect with ••••", "key ••••"]
