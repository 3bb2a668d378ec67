import contextvars
import gc
import json
import os
import random
import subprocess
import sys
import threading
import time
import tracemalloc
from base64 import b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit import clock, mask
from audit.capture import captured_by
from audit.text import gate, register_secret
from audit.transcript import Transcript
from tests.audit.conftest import forget_secrets

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
        forget_secrets(patch)
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
        forget_secrets(patch)
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


@given(st.data())
def test_a_torn_value_of_any_length_is_masked_among_many(data: st.DataObject):
    values = [f"{n:03d}" + "".join(chr(97 + (n * i) % 23) for i in range(length))
              for n, length in enumerate([9, 20, 100, 125, 126, 300, 5_000] * 6)]  # fmt: skip
    value = data.draw(st.sampled_from(values))
    place = data.draw(st.integers(min_value=1, max_value=len(value) - 1))
    with pytest.MonkeyPatch.context() as patch:
        forget_secrets(patch)
        for each in values:
            register_secret(each)
        assert gate(f"## {value[:place]}\n{value[place:]} ##") == "## ••••\n•••• ##"
        if place >= 4:
            assert mask.goes_on(f"## {value[:place]}")


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


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("password", "password=hunter2hunter2"),
        ("password", "--db-password hunter2hunter2"),
        ("secret", '{"secret": "hunter2hunter2"}'),
        ("Bearer", "said Bearer hunter2hunter2"),
        ("postgres", "postgres://anna:hunter2hunter2@db/x"),
        ("password=hunter2", "password=hunter2hunter2"),
    ],
)
def test_somebodys_secret_hides_no_key_that_tells_of_another(
    no_secrets: None, word: str, line: str
):
    register_secret(word)
    kept = gate(line)
    assert "hunter2" not in kept
    assert word not in kept


def test_a_value_of_several_words_behind_a_key_is_masked_whole(no_secrets: None):
    register_secret("correct horse battery")
    assert gate("password=correct horse battery, ok") == "password=••••, ok"


def test_a_value_inside_another_does_not_leave_the_rest_of_it(no_secrets: None):
    register_secret("abcdefgh")
    register_secret("abcdefgh-and-more")
    assert gate("x abcdefgh-and-more y") == "x •••• y"


# --- how long


def kubeconfig(number: int) -> str:
    """5.5 KB, as a cluster of one node has them."""
    made = random.Random(number)  # noqa: S311
    authority, certificate, key = (
        b64encode(made.randbytes(size)).decode() for size in (1_100, 1_100, 1_650)
    )
    return f"""apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {authority}
    server: https://10.0.0.{number}:6443
  name: cluster-{number}
current-context: admin@cluster-{number}
users:
- name: admin-{number}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"""


def attempt() -> Transcript:
    return Transcript(claim_id=clock.uuid7())


def register_in(one: Transcript, value: str) -> None:
    with captured_by(one.write, one.known):
        register_secret(value)


def register_others() -> None:
    """So many that none is remembered for having come last."""
    for number in range(2 * mask.RECENT // 5_000):
        register_in(attempt(), kubeconfig(1_000 + number))


def test_memory_and_time_do_not_grow_with_the_attempts_that_have_ended(
    no_secrets: None,
):
    values = [kubeconfig(number) for number in range(300)]
    took = []
    tracemalloc.start()
    try:
        for value in values:
            one = attempt()
            begun = time.thread_time()
            register_in(one, value)
            took.append(time.thread_time() - begun)
            assert value[200:1_000] not in gate(value)
            one.close()
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 4 * 2**20  # 0.6
    # The best of many: what else the machine does is no matter.
    assert min(took[-50:]) < 3 * min(took[:50])


def test_a_secret_is_masked_while_any_attempt_that_knows_it_is_open(no_secrets: None):
    line = "server: https://10.0.0.1:6443"
    one, other = attempt(), attempt()
    for each in (one, other):
        register_in(each, kubeconfig(1))

    one.close()
    del one, each
    register_others()
    assert gate(line) == "••••"

    other.close()
    register_others()
    assert gate(line) == "••••"  # the end of the other is still to be stored

    del other
    register_others()
    assert gate(line) == line


def test_a_secret_is_masked_for_some_time_after_its_attempt(no_secrets: None):
    register_in(attempt(), kubeconfig(1))
    for number in range(2, 10):
        register_in(attempt(), kubeconfig(number))
    assert "6443" not in gate("server: https://10.0.0.1:6443")


def test_what_the_late_thread_of_an_ended_attempt_prints_is_masked(no_secrets: None):
    go_on, said = threading.Event(), []

    def late() -> None:
        go_on.wait(10)
        said.append(gate("my key is correct-horse-battery"))

    def run() -> threading.Thread:
        one = attempt()
        with captured_by(one.write, one.known):
            register_secret("correct-horse-battery")
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(late,))
            thread.start()
        one.close()
        return thread

    thread = run()
    register_others()
    go_on.set()
    thread.join(10)
    assert said == ["my key is ••••"]


def test_what_is_known_to_nobody_is_forgotten_whole(no_secrets: None):
    register_in(attempt(), "abc-123")
    register_in(attempt(), kubeconfig(1))
    for _ in range(3):  # the same ones again
        register_others()
    assert len(mask._recent) == mask.RECENT // len(kubeconfig(1_000))
    assert len(mask._recent) <= len(mask._secrets) <= len(mask._recent) + 1
    mask._recent.clear()
    register_secret("the-only-one-left")
    assert set(mask._forms) == {"the-only-one-left"}
    assert {form for forms in mask._grams.values() for form in forms} == set(
        mask._forms
    )
    assert (mask._short, mask._long) == (frozenset(), 0)


def test_what_settings_keep_secret_is_masked_from_the_start_and_for_good():
    script = (
        "import django; django.setup(); from audit import mask;"
        "from audit.text import gate, register_secret;"
        "[register_secret(f'{n:040d}') for n in range(2 * mask.RECENT // 40)];"
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
