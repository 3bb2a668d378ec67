"""Values of settings: what forms refuse, and what the engine makes of anything."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueue import bounds
from workqueue.bounds import Declaration, Key
from workqueue.policy import WORKER_NODE_CONFIGURATION, as_values, resolve

pytestmark = pytest.mark.once

NUMBERS = [key for key in WORKER_NODE_CONFIGURATION.keys if key.type == "integer"]
KEYS = list(WORKER_NODE_CONFIGURATION.keys)
NONSENSE: list[Any] = [
    0, -1, 1.5, "ten", None, 1e9, math.nan, math.inf, -math.inf, "\u0665", "\uff15", "1e3",
    [], [1], {}, {"a": {"b": [1]}}, True, 10**400, -(10**400), "1_000", "0x10", "--5",
    "NaN", "null", "9" * 5000, "a" * 100_000, "5 5", "\x00", "\udcd1",
]  # fmt: skip

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: repr(value)[:20])
def test_a_form_refuses_every_nonsense_value_and_names_the_range(
    key: Key, value: Any
) -> None:
    stored, problem = bounds.accept(key, value)
    assert stored is None
    assert problem
    assert key.range == f"Enter a number from {key.low:,} to {key.high:,}."


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: repr(value)[:20])
def test_the_engine_uses_a_value_in_range_of_every_nonsense_value_and_reports_it(
    key: Key, value: Any
) -> None:
    used, adjusted = bounds.clamp(
        {key.name: value}, declaration=WORKER_NODE_CONFIGURATION
    )
    if key.type == "integer":
        assert key.low <= used[key.name] <= key.high
    elif key.type == "choice":
        assert used[key.name] in key.choices
    else:
        assert isinstance(used[key.name], bool)
    if not (key.type == "boolean" and value is True):
        (one,) = adjusted
        assert one.key == key.name
        assert one.why
        assert len(one.asked) <= 50
        assert "\n" not in one.asked


@pytest.mark.parametrize("text", [" 5 ", "5\n", "\t5", "05", "+5", "5"])
def test_blanks_around_a_number_are_trimmed(text: str) -> None:
    assert bounds.accept(NUMBERS[0], text) == (5, "")


def test_a_number_may_be_typed_as_the_sentence_writes_it() -> None:
    poll = WORKER_NODE_CONFIGURATION.key("WORKER_POLL_INTERVAL_MS")
    assert poll is not None
    assert bounds.accept(poll, "600,000") == (600_000, "")
    assert bounds.accept(poll, "60,00")[0] is None


@pytest.mark.parametrize(
    ("stored", "used"),
    [
        (0, 1),
        (-1, 1),
        (501, 500),
        (1e9, 500),
        (1.5, 1),
        (math.inf, 500),
        (-math.inf, 1),
    ],
)
def test_a_number_out_of_range_is_clamped_to_the_nearest(
    stored: Any, used: int
) -> None:
    values, _ = bounds.clamp(
        {"WORKER_CONCURRENCY": stored}, declaration=WORKER_NODE_CONFIGURATION
    )
    assert values["WORKER_CONCURRENCY"] == used


@pytest.mark.parametrize(
    "stored", [None, 5, "x", [], [{"WORKER_CONCURRENCY": 5}], math.nan]
)
def test_what_is_no_set_of_values_means_the_defaults(stored: Any) -> None:
    used, adjusted = bounds.clamp(stored, declaration=WORKER_NODE_CONFIGURATION)
    assert used == {key.name: key.default for key in KEYS}
    assert [one.key for one in adjusted] == ["*"]


def test_a_key_of_another_release_is_reported_and_not_used() -> None:
    _, (one,) = bounds.clamp(
        {"WORKER_COLOUR": 5}, declaration=WORKER_NODE_CONFIGURATION
    )
    assert (one.key, one.asked, one.used) == ("WORKER_COLOUR", "5", "nothing")


def test_a_number_stored_as_text_is_used_and_reported() -> None:
    used, (one,) = bounds.clamp(
        {"WORKER_CONCURRENCY": " 7 "}, declaration=WORKER_NODE_CONFIGURATION
    )
    assert used["WORKER_CONCURRENCY"] == 7
    assert one.asked == "“7”"


@given(anything)
def test_nothing_that_json_can_hold_makes_resolve_raise(stored: Any) -> None:
    policy, adjusted = resolve(stored)
    for key in KEYS:
        value = as_values(policy)[key.name]
        assert key.type != "integer" or key.low <= int(value) <= key.high
    assert all(one.why for one in adjusted)


@given(st.dictionaries(st.sampled_from([key.name for key in KEYS]), anything))
def test_what_the_form_accepts_is_used_unchanged_and_the_rest_is_reported(
    stored: dict[str, Any],
) -> None:
    used, adjusted = bounds.clamp(stored, declaration=WORKER_NODE_CONFIGURATION)
    reported = {one.key for one in adjusted}
    for name, value in stored.items():
        key = WORKER_NODE_CONFIGURATION.key(name)
        assert key is not None
        accepted, problem = bounds.accept(key, value)
        if problem:
            assert name in reported
        else:
            assert used[name] == accepted


@given(st.text())
def test_no_text_makes_reading_json_raise(text: str) -> None:
    bounds.read_json(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "9" * 10_000, '{"a": ' * 50_000, "1" * 5000]
)
def test_json_that_python_cannot_hold_is_read_as_something(text: str) -> None:
    assert resolve(bounds.read_json(text))


def test_a_long_number_within_json_is_huge_and_nothing_worse() -> None:
    values = bounds.read_json(f'{{"WORKER_CONCURRENCY": {"9" * 10_000}}}')
    assert resolve(values)[0].concurrency == 500


def test_a_declaration_knows_its_keys_by_name() -> None:
    declaration = Declaration(name="x", keys=(Key(name="A", default=1, sentence=""),))
    assert declaration.key("A") is not None
    assert declaration.key("B") is None


def test_what_is_shown_back_of_a_value_is_short() -> None:
    assert len(bounds.quote({"a": "x" * 10_000})) <= 50
    assert bounds.quote({1, 2}) == "set"
    assert json.loads(json.dumps(bounds.quote("\udcd1"))) == "“\udcd1”"
