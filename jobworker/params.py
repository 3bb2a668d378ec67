"""params: a type's `Params` dataclass, from what somebody typed and back to JSON.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Params:
        name: str = param("Name of the deployment.", pattern=NAME, says="lower-case ...")
        nodes: int = param("Machines in it.", default=1, low=1, high=100)

Types: str, int, float, bool. The form, the command line and Python submit through
`read`, which refuses with a sentence per parameter.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, get_type_hints

from audit.text import visible
from jobworker.exceptions import InvalidParams
from workqueue.bounds import quote

LONGEST = 500  # characters of a text, where a parameter says nothing
LARGEST = 10**18 - 1  # of a number, where a parameter says nothing
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter, for the form and the help."""

    name: str
    type: type
    sentence: str  # what it is
    default: Any  # MISSING: it is required
    low: float
    high: float
    choices: tuple[str, ...]
    pattern: str
    says: str  # what the pattern asks for, in words
    longest: int
    check: Callable[[Any], str] | None  # value -> what is wrong with it; "": nothing

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is MISSING

    @property
    def range(self) -> str:
        """What may be entered, as a sentence; "": any text."""
        if self.choices:
            return f"Choose {', '.join(self.choices[:-1])} or {self.choices[-1]}."
        if self.type is bool:
            return "Choose on or off."
        if self.type in (int, float):
            what = "a whole number" if self.type is int else "a number"
            if (self.low, self.high) == (-LARGEST, LARGEST):
                return f"Enter {what} of at most 18 digits."
            return f"Enter {what} from {self.low:,} to {self.high:,}."
        return f"Enter {self.says}." if self.says else ""


def param(
    sentence: str,
    *,
    default: Any = MISSING,
    low: float = -LARGEST,
    high: float = LARGEST,
    choices: tuple[str, ...] = (),
    pattern: str = "",
    says: str = "",
    longest: int = LONGEST,
    check: Callable[[Any], str] | None = None,
) -> Any:
    """A field of a Params dataclass. `pattern` must match the whole text; `says` names it.

    `check` looks at a value that is all else that it must be, and answers with the
    sentence that refuses it, or "".
    """
    about = {
        "sentence": sentence,
        "low": low,
        "high": high,
        "choices": choices,
        "pattern": pattern,
        "says": says,
        "longest": longest,
        "check": check,
    }
    if default is MISSING:
        return dataclasses.field(metadata=about)
    return dataclasses.field(default=default, metadata=about)


def describe(params: type) -> tuple[Param, ...]:
    """The parameters of a Params class, in their order."""
    hints = get_type_hints(params)
    return tuple(
        Param(
            name=each.name,
            type=hints[each.name],
            default=each.default,
            **{
                "sentence": "",
                "low": -LARGEST,
                "high": LARGEST,
                "choices": (),
                "pattern": "",
                "says": "",
                "longest": LONGEST,
                "check": None,
                **each.metadata,
            },
        )
        for each in dataclasses.fields(params)
    )


def read(params: type, given: Mapping[str, object]) -> Any:
    """The Params of these values, texts as they were typed or JSON values.

    Raises InvalidParams with a sentence for every parameter that is wrong. A class may
    refuse combinations by raising InvalidParams or ValueError in __post_init__: it is
    asked only where each value by itself is right.
    """
    if not isinstance(given, Mapping):  # as somebody wrote it by SQL
        raise InvalidParams({"parameters": "They are not a JSON object."})
    known = {each.name: each for each in describe(params)}
    problems = {
        quote(name).strip("“”"): (
            f"There is no such parameter. There are {', '.join(known)}."
            if known
            else "This type takes no parameters."
        )
        for name in given
        if name not in known
    }
    values: dict[str, Any] = {}
    for name, each in known.items():
        value = given.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            if each.required:
                problems[name] = f"It is missing. {each.range}".strip()
            continue
        values[name], problem = _accept(each, value)
        if problem:
            problems[name] = f"{problem} {each.range}".strip()
        elif each.check and (refused := each.check(values[name])):
            problems[name] = refused
    if problems:
        raise InvalidParams(problems)
    try:
        return params(**values)
    except ValueError as problem:
        raise InvalidParams({"parameters": str(problem)}) from None


def as_json(params: Any) -> dict[str, Any]:
    """The values as they are stored."""
    return dataclasses.asdict(params)


def from_pairs(pairs: list[str]) -> dict[str, object]:
    """`k=v` of the command line. Raises InvalidParams for one without `=`."""
    found: dict[str, object] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise InvalidParams({quote(pair): "Write it as name=value."})
        if name in found:
            raise InvalidParams({name: "It is given twice."})
        found[name] = value
    return found


def from_text(text: str) -> dict[str, object]:
    """A JSON object, of the command line. Raises InvalidParams."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidParams({"parameters": "They are not a JSON object."})
    return found


def _accept(each: Param, value: object) -> tuple[Any, str]:
    """(value, "") or (None, what is wrong with it)."""
    if each.type is bool:
        return _truth(value)
    if each.type in (int, float):
        return _number(each, value)
    if not isinstance(value, str):
        try:
            value = json.dumps(value)
        except (TypeError, ValueError, RecursionError):  # an object of Python's own
            return None, f"A value of type {type(value).__name__} is no JSON."
    text = value.strip()
    if visible(text) != text or any(
        ord(letter) < 32 and letter not in "\n\t" for letter in text
    ):
        return None, "It has characters that cannot be shown."
    if each.choices and text not in each.choices:
        return None, f"{quote(text)} is not one of the choices."
    if len(text) > each.longest:
        return None, f"That is too long. Enter at most {each.longest} characters."
    if each.pattern and not re.fullmatch(each.pattern, text, re.ASCII):
        return None, f"{quote(text)} cannot be used."
    return text, ""


def _truth(value: object) -> tuple[bool | None, str]:
    if isinstance(value, bool):
        return value, ""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True, ""
    return (False, "") if word in _FALSE else (None, f"{quote(value)} is neither.")


def _number(each: Param, value: object) -> tuple[int | float | None, str]:
    whole = each.type is int
    number: int | float | None = None
    if isinstance(value, str):
        text = value.strip().replace(",", "")
        if whole and _WHOLE.fullmatch(text):
            number = int(text)
        elif not whole:
            number = _decimal(text)
    elif isinstance(value, bool):
        number = None
    elif isinstance(value, int) or (isinstance(value, float) and not whole):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    # As a comparison: math.isfinite raises for an integer beyond the floats.
    if number is None or not -math.inf < number < math.inf:
        return None, f"{quote(value)} is not a {'whole ' if whole else ''}number."
    if each.low <= number <= each.high:
        return number, ""
    side = "below" if number < each.low else "above"
    # Python refuses to print integers of some thousands of digits.
    shown = f"{number:,}" if abs(number) <= LARGEST else "That"
    return None, f"{shown} is {side} the range."


def _decimal(text: str) -> float | None:
    try:
        return float(text) if text.isascii() else None
    except ValueError:
        return None
