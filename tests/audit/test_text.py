import json
import math
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit import text

pytestmark = pytest.mark.once

ANY_TEXT = st.text(
    st.characters(exclude_categories=()), max_size=700
)  # lone surrogates too
LIMITS = st.integers(min_value=1, max_value=900)


class Stubborn:
    def __str__(self) -> str:
        raise RuntimeError("no")


@given(ANY_TEXT, LIMITS)
def test_whatever_comes_in_what_goes_out_can_be_stored(given: str, limit: int):
    kept = text.gate(given, limit=limit)
    assert len(kept) <= limit
    assert "\0" not in kept
    kept.encode()  # no lone surrogate


@given(ANY_TEXT)
def test_the_gate_changes_nothing_twice(given: str):
    once = text.gate(given)
    assert text.gate(once) == once


@given(
    st.text(
        "abcdefgh ijlmnrstuvwxyz0123456789.,\n", max_size=600
    )  # no letter k, p, q, o: no telling key
)
def test_clean_text_passes_as_it_is(given: str):
    assert text.gate(given) == given


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\0b", "a␀b"),
        ("a\udcd1b", "a\\udcd1b"),
        ("für 5 €", "für 5 €"),
        ("", ""),
    ],
)
def test_what_a_database_refuses_is_made_visible(given: str, kept: str):
    assert text.gate(given) == kept


@pytest.mark.parametrize("length", [255, 256, 1_025, 65_536])
def test_text_up_to_the_limit_is_kept_whole(length: int):
    assert text.gate("x" * length) == "x" * length


@pytest.mark.parametrize("length", [65_537, 70_000, 50_000_000])
def test_longer_text_is_cut_in_the_middle_with_the_number_left_out(length: int):
    given = "begin " + "x" * (length - 10) + " end"
    kept = text.gate(given)
    note = re.search(r" … ([\d,]+) of ([\d,]+) characters left out … ", kept)
    assert note is not None
    assert note[2] == f"{length:,}"
    # What is there and what is said to be missing make the whole.
    assert len(kept) - len(note[0]) + int(note[1].replace(",", "")) == length
    assert text.LIMIT - 20 < len(kept) <= text.LIMIT
    assert kept.startswith("begin x")
    assert kept.endswith("x end")


def test_two_hundred_million_characters_take_no_time():
    given = "x" * 200_000_000
    begun = time.perf_counter()
    text.gate(given)
    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize(
    "hostile",
    [
        "token" * 13_000,
        "://" * 22_000,
        "://a:" * 13_000,
        "postgres://a:" * 5_000,
        'password="' * 6_500,
        'password="\\' * 6_000,
        "bearer " * 9_000,
        "--a-" * 16_000,
        "secret" + "-" * 65_000,
    ],
)
def test_no_text_makes_the_gate_slow(hostile: str):
    begun = time.perf_counter()
    text.gate(hostile)
    assert time.perf_counter() - begun < 2


def test_a_secret_on_the_edge_of_the_cut_is_not_half_kept(no_secrets: None):
    secret = "0123456789abcdef" * 8
    text.register_secret(secret)
    for before in range(text.LIMIT // 2, text.LIMIT, 97):
        kept = text.gate("x" * before + secret + "y" * 70_000)
        assert secret[:24] not in kept
        assert secret[-24:] not in kept


def test_what_is_no_text_is_written_out():
    assert text.gate(ValueError("a\0")) == "a␀"  # type: ignore[arg-type]
    assert "Stubborn" in text.gate(Stubborn())  # type: ignore[arg-type]


def test_short_clean_text_passes_in_a_few_microseconds():
    line = "sent 3 notifications to the web channel of tenant-18234 in 12 ms"
    begun = time.thread_time()
    for _ in range(20_000):
        text.gate(line)
    assert (time.thread_time() - begun) / 20_000 < 20e-6  # 1.5 on a free machine


# --- JSON


def jsonable(value: Any) -> None:
    """What both databases take."""
    written = json.dumps(value, allow_nan=False)
    assert "\\u0000" not in written
    json.loads(written)
    json.dumps(value, ensure_ascii=False).encode()


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.datetimes()
        | st.uuids()
        | st.decimals()
        | st.binary(max_size=5)
        | ANY_TEXT,
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(ANY_TEXT | st.integers(), inner)
            | st.tuples(inner)
        ),
        max_leaves=20,
    )
)
def test_whatever_comes_in_what_goes_out_is_json(value: Any):
    jsonable(text.gate_json(value))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_has_no_word_for_become_text(value: float):
    assert text.gate_json({"a": [value]}) == {"a": [str(value)]}


def test_values_under_telling_keys_are_masked_at_any_depth():
    given = {
        "user": "ada",
        "Password": "one",
        "list": [{"api_key": "two", "n": 1}, {"headers": {"Authorization": "three"}}],
        "client-secret": {"inner": "four"},
        "apiToken": 5,
        "has_password": True,
        "token": None,
        "tokens": 12,
    }
    kept = text.gate_json(given)
    assert kept == {
        "user": "ada",
        "Password": "••••",
        "list": [{"api_key": "••••", "n": 1}, {"headers": {"Authorization": "••••"}}],
        "client-secret": "••••",
        "apiToken": "••••",
        "has_password": True,
        "token": None,
        "tokens": 12,
    }


def test_too_much_json_is_left_out_and_counted():
    kept = text.gate_json(list(range(100_000)), limit=500)
    assert len(json.dumps(kept)) < 1_000
    assert kept[-1] == f"… {100_000 - (len(kept) - 1):,} more left out"
    kept = text.gate_json({f"k{n}": "x" * 50 for n in range(1_000)}, limit=500)
    assert len(kept) < 20
    assert kept["…"].endswith("more left out")


def test_json_that_holds_itself_ends():
    circle: dict[str, Any] = {}
    circle["again"] = circle
    jsonable(text.gate_json(circle))


def test_integers_that_python_will_not_print_are_named():
    assert text.gate_json(10**10_000) == "(an integer of 33,220 bits)"
