"""Parameters that all Terraform types share."""

import json
from typing import Any

import pytest

from jobworker.exceptions import InvalidParams
from jobworker.params import read
from jobworker.providers import given
from jobworker.registry import module, types

pytestmark = pytest.mark.once

# Every type that has a JSON parameter, with what else it needs.
ASKED = {
    "cluster_provision": {"name": "demo"},
    "database_provision": {"name": "demo"},
    "packer_build": {"name": "demo", "version": "1"},
}
NO_NUMBER = "is no number of JSON. Enter a finite one."
NO_TEXT = "has a character that cannot be kept"
TOO_DEEP = "It is nested too deep. Enter at most 32 levels."


def refused(type: str, **values: Any) -> dict[str, str]:
    with pytest.raises(InvalidParams) as refusal:
        read(module(type).Params, {**ASKED[type], **values})
    return refusal.value.problems


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return {"a": value}


def test_every_type_with_variables_is_looked_at_here() -> None:
    have = {type for type in types() if hasattr(module(type).Params, "variables")}
    assert have == set(ASKED)


@pytest.mark.parametrize("type", ASKED)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": float("inf")}, f"“a” {NO_NUMBER}"),
        ({"a": [1, {"b": float("nan")}]}, f"“a[1].b” {NO_NUMBER}"),
        ({"a": {"b": ["x\0"]}}, f"“a.b[0]” {NO_TEXT}"),
        ({"a": [{"b\0": 1}]}, f"“a[0].b\N{SYMBOL FOR NULL}” {NO_TEXT}"),
        ({"a": "\ud800"}, f"“a” {NO_TEXT}"),
        ({"a": {"\udfff": 1}}, f"“a.\\udfff” {NO_TEXT}"),
        (nested(32), TOO_DEEP),
        ([1], "Enter a JSON object, or nothing."),
    ],
)  # fmt: skip
def test_variables_that_cannot_be_kept_are_refused_with_their_place_as_text_and_as_an_object(
    type: str, value: Any, says: str
) -> None:
    for way in (value, json.dumps(value)):
        problems = refused(type, variables=way)
        assert list(problems) == ["variables"]
        assert problems["variables"].startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1e999}', f"“a” {NO_NUMBER}"),
        ('{"a": -1e999}', f"“a” {NO_NUMBER}"),
        ('{"a": ' + "[" * 4_990 + "]" * 4_990 + "}", TOO_DEEP),
        ('{"a": ' + "9" * 5_000 + "}", "Enter a JSON object, or nothing."),
        ("{", "Enter a JSON object, or nothing."),
        ('{"name": "x"}', "Give name as a parameter of its own."),
    ],
)
def test_variables_that_only_a_text_can_have_are_refused_too(
    text: str, says: str
) -> None:
    assert refused("cluster_provision", variables=text) == {"variables": says}


@pytest.mark.parametrize("value", [{"a": {1}}, object(), {"a": 10**5_000}])
def test_an_object_that_is_no_json_is_refused(value: object) -> None:
    says = f"A value of type {type(value).__name__} is no JSON."
    assert refused("packer_build", variables=value) == {"variables": says}


def test_variables_that_can_be_kept_are_what_they_were() -> None:
    value = {**nested(31), "b": 1e308, "c": "ü😀\n", "d": None, "e": 10**120}
    for way in (value, json.dumps(value)):
        checked = read(
            module("packer_build").Params, {**ASKED["packer_build"], "variables": way}
        )
        assert given.parsed(checked.variables) == value


def test_no_variables_are_none() -> None:
    assert given.parsed("") == {}
    assert given.parsed('{"delay": 5}') == {"delay": 5}


def test_all_that_is_wrong_is_said_at_once() -> None:
    problems = refused(
        "cluster_provision", name="BAD", nodes=0, module="nope", variables="{"
    )
    assert set(problems) == {"name", "nodes", "module", "variables"}
    assert problems["module"].startswith("There is no cluster module nope. There are ")
    wrong = refused("packer_build", version="?", template="nope", variables="{")
    assert set(wrong) == {"version", "template", "variables"}
