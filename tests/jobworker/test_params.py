"""Parameters: what is wrong with which one is said."""

from dataclasses import dataclass
from typing import Any

import pytest

from jobworker import params
from jobworker.exceptions import InvalidParams
from jobworker.params import param

pytestmark = pytest.mark.once


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    name: str = param(
        "Its name.",
        pattern=r"[a-z][a-z0-9-]*",
        says="lower-case letters, digits and hyphens",
    )
    nodes: int = param("Machines.", default=2, low=1, high=1000)
    share: float = param("Part.", default=0.5, low=0, high=1)
    fast: bool = param("Whether.", default=False)
    size: str = param("Size.", default="small", choices=("small", "large"))
    note: str = param("Any text.", default="")
    count: int = param("Any number.", default=0)

    def __post_init__(self) -> None:
        if self.fast and self.size == "large":
            raise ValueError("fast is for small ones")


def problems(**given: Any) -> dict[str, str]:
    with pytest.raises(InvalidParams) as refused:
        params.read(Params, {"name": "demo", **given})
    return refused.value.problems


def test_texts_as_they_were_typed_and_json_values_give_the_same() -> None:
    typed = {
        "name": " demo ",
        "nodes": "1,000",
        "share": "0.25",
        "fast": "on",
        "size": "",
    }
    json = {"name": "demo", "nodes": 1000.0, "share": 0.25, "fast": True}
    assert params.read(Params, typed) == params.read(Params, json)
    assert params.as_json(params.read(Params, json))["nodes"] == 1000


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": ""}, "name: It is missing. Enter lower-case letters, digits and hyphens."),
        ({"name": "BAD"}, "name: “BAD” cannot be used. Enter lower-case letters, digits and hyphens."),
        ({"name": "a" * 501}, "name: That is too long. Enter at most 500 characters."),
        ({"name": "a\0b"}, "name: It has characters that cannot be shown."),
        ({"note": "a\ud800b"}, "note: It has characters that cannot be shown."),
        ({"note": "a\0b"}, "note: It has characters that cannot be shown."),
        ({"size": "\udcff"}, "size: It has characters that cannot be shown. Choose small or large."),
        ({"nodes": 10**400}, "nodes: That is above the range. Enter a whole number from 1 to 1,000."),
        ({"nodes": -(10**5000)}, "nodes: That is below the range."),
        ({"nodes": 1e300}, "nodes: That is above the range."),
        ({"nodes": float("inf")}, "nodes: Infinity is not a whole number."),
        ({"share": 10**400}, "share: That is above the range."),
        ({"share": float("nan")}, "share: NaN is not a number."),
        ({"count": 10**18}, "count: That is above the range. Enter a whole number of at most 18 digits."),
        ({"count": "9" * 19}, "count: “9999999999999999999” is not a whole number. Enter a whole number of at most 18 digits."),
        ({"nodes": 0}, "nodes: 0 is below the range. Enter a whole number from 1 to 1,000."),
        ({"nodes": "1e3"}, "nodes: “1e3” is not a whole number."),
        ({"nodes": "१"}, "nodes: “१” is not a whole number."),
        ({"nodes": True}, "nodes: true is not a whole number."),
        ({"share": "nan"}, "share: “nan” is not a number."),
        ({"fast": "perhaps"}, "fast: “perhaps” is neither. Choose on or off."),
        ({"size": "huge"}, "size: “huge” is not one of the choices. Choose small or large."),
        ({"what": 1}, "what: There is no such parameter. There are name, nodes, share, fast, size, note, count."),
        ({"fast": True, "size": "large"}, "parameters: fast is for small ones"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_parameter_and_what_would_be_right(
    given: Any, says: str
) -> None:
    name, _, text = says.partition(": ")
    assert problems(**given)[name].startswith(text)


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert set(problems(name="BAD", nodes=0, share=2)) == {"name", "nodes", "share"}


def test_the_command_lines_pairs_and_object() -> None:
    assert params.from_pairs(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}
    assert params.from_text('{"a": 1}') == {"a": 1}
    for bad in ("[]", "{", "nonsense"):
        with pytest.raises(InvalidParams):
            params.from_text(bad)
    with pytest.raises(InvalidParams):
        params.from_pairs(["nothing"])
