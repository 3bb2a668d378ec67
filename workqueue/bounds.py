"""bounds: what a value of a setting may be, and the nearest one where it is not that.

Pure. `accept` is the manner of forms: a bad value is refused with a sentence. `clamp`
is the manner of the engine: it never raises, and reports what it changed.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workqueue.models.setting import PatientDecoder, read_integer

LONGEST_QUOTE = 40  # characters of a refused value that are shown back
_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)", re.ASCII)  # 1000 or 1,000
_WORDS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A stored value that is not used as it stands."""

    key: str
    asked: str
    used: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One value of a setting."""

    name: str
    default: int | bool | str
    sentence: str  # what it does, for the form
    unit: str = ""  # items | ms | s
    lowest: int | Callable[[], int] = 0
    high: int = 0
    choices: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """What it takes: integer, boolean or choice."""
        if isinstance(self.default, bool):
            return "boolean"
        return "integer" if isinstance(self.default, int) else "choice"

    @property
    def low(self) -> int:
        """The lower bound. That of one key depends on the environment."""
        return self.lowest if isinstance(self.lowest, int) else self.lowest()

    @property
    def range(self) -> str:
        """What may be entered, as a sentence."""
        if self.type == "integer":
            return f"Enter a number from {self.low:,} to {self.high:,}."
        words = ("on", "off") if self.type == "boolean" else self.choices
        return f"Choose {' or '.join(words)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A setting: its name and its keys."""

    name: str
    keys: tuple[Key, ...]
    sentence: str = ""  # what it is for, and when a change is in force
    page: str = ""  # name of its own page, where it has one

    def key(self, name: str) -> Key | None:
        """The key of that name."""
        return next((key for key in self.keys if key.name == name), None)


def accept(key: Key, value: object) -> tuple[Any, str]:
    """(value to store, "") or (None, what is wrong with it)."""
    if key.type == "integer":
        return _accept_integer(key, value)
    if key.type == "boolean":
        truth = _truth(value)
        problem = f"{quote(value)} is neither on nor off."
        return truth, "" if truth is not None else problem
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in key.choices:
        return word, ""
    return None, f"{quote(value)} is not one of the choices."


def _accept_integer(key: Key, value: object) -> tuple[int | None, str]:
    number = _whole(value)
    if number is None:
        return None, f"{quote(value)} is not a whole number."
    if not key.low <= number <= key.high:
        side = "below" if number < key.low else "above"
        shown = f"{number:,}" if abs(number) < 10**15 else quote(value)
        return None, f"{shown} is {side} the range."
    return number, ""


def clamp(
    stored: object, *, declaration: Declaration
) -> tuple[dict[str, Any], tuple[Adjustment, ...]]:
    """A value for every key, in range; and what had to be changed for that."""
    used: dict[str, Any] = {key.name: key.default for key in declaration.keys}
    if not isinstance(stored, dict):
        why = "It is not a set of keys and values."
        return used, (
            Adjustment(key="*", asked=quote(stored), used="the defaults", why=why),
        )
    adjusted: list[Adjustment] = []
    for name, value in stored.items():
        key = declaration.key(name) if isinstance(name, str) else None
        if key is None:
            why = "This release knows no such key."
            used_text = "nothing"
        else:
            used[key.name], why = _nearest(key, value)
            used_text = _show(used[key.name])
        if why:
            asked = quote(value)
            adjusted.append(
                Adjustment(key=_plain(name), asked=asked, used=used_text, why=why)
            )
    return used, tuple(adjusted)


def read_json(text: str) -> object:
    """What a JSON text holds, or the text itself where nobody could hold it."""
    return json.loads(text, cls=PatientDecoder)


def _nearest(key: Key, value: object) -> tuple[Any, str]:
    """The nearest safe value, and why it is not the stored one ("": it is)."""
    accepted, problem = accept(key, value)
    if not problem:
        same = type(value) is type(accepted) and value == accepted
        return accepted, "" if same else "It is stored in another form."
    number = _number(value) if key.type == "integer" else None
    if number is None:
        return key.default, f"{problem} The default is used. {key.range}"
    inside = (
        key.low if number < key.low else key.high if number > key.high else int(number)
    )
    return inside, f"{problem} {key.range}"


def _number(value: object) -> int | float | None:
    """A number of any kind, infinite ones too; None: it is none."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return _whole(value)


def _whole(value: object) -> int | None:
    """A whole number, from JSON or as somebody typed it in ASCII digits."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return read_integer(value.strip().replace(",", ""))
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _truth(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | str):
        return _WORDS.get(str(value).strip().lower()) if not _is_huge(value) else None
    return None


def _is_huge(value: int | str) -> bool:
    return isinstance(value, int) and abs(value) > 1


def _show(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _plain(value: object) -> str:
    return quote(value).strip("“”")


def quote(value: object) -> str:
    """The value as the operator wrote it, short and in one line."""
    if isinstance(value, str):
        text = " ".join(value.split())
        return f"“{text[:LONGEST_QUOTE]}{'…' if len(text) > LONGEST_QUOTE else ''}”"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text[:LONGEST_QUOTE] + ("…" if len(text) > LONGEST_QUOTE else "")
