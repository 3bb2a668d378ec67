"""forms: the form of a job type, made from its Params, and what was typed into it.

Nothing is validated here: `jobworker.submit` refuses with a sentence per parameter, and
the form shows it beside what was typed.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass

from audit import mask
from jobworker import board, params, registry
from jobworker.params import LONGEST, Param
from jobworker.submit import HIGHEST_PRIORITY, LOWEST_PRIORITY
from workqueue.bounds import Key, accept

PREFIX = "p-"  # of a parameter's field: no name of one collides with another field's
PRIORITY = Key(
    name="priority",
    default=0,
    lowest=LOWEST_PRIORITY,
    high=HIGHEST_PRIORITY,
    sentence="Higher first, among the tenant's own jobs.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A parameter on the form."""

    param: Param
    name: str  # of the field
    text: str  # what stands in it
    problem: str

    @property
    def kind(self) -> str:
        """How it is entered: text, long, secret, number, choice or box."""
        if self.param.choices:
            return "choice"
        if self.param.type is bool:
            return "box"
        if self.param.type in (int, float):
            return "number"
        if mask.telling_key(self.param.name):
            return "secret"
        return "long" if self.param.longest > LONGEST else "text"

    @property
    def on(self) -> bool:
        """For a box."""
        return self.text == "on"

    @property
    def hint(self) -> str:
        """Its default and range, under its sentence."""
        said = [self.param.range] if self.param.range else []
        if self.param.required:
            return " ".join([*said, "It must be given."])
        shown = _text(self.param, self.param.default)
        return " ".join([f"Default {shown}." if shown else "May be empty.", *said])


def fields(
    type: str, typed: Mapping[str, str], problems: Mapping[str, str]
) -> list[Field]:
    """The form. `typed`: by the parameters' names."""
    return [
        Field(
            param=each,
            name=f"{PREFIX}{each.name}",
            text=typed.get(each.name, ""),
            problem=problems.get(each.name, ""),
        )
        for each in params.describe(registry.module(type).Params)
    ]


def typed(type: str, sent: Mapping[str, str]) -> dict[str, str]:
    """What was typed, by the parameters' names. A box that is not ticked is not sent: it is off."""
    return {
        each.name: sent.get(f"{PREFIX}{each.name}", "off" if each.type is bool else "")
        for each in params.describe(registry.module(type).Params)
    }


def prefilled(type: str, stored: object) -> dict[str, str]:
    """These values as they would be typed: of an earlier job, of a link. Else the defaults; never secrets."""
    known = stored if isinstance(stored, dict) else {}
    return {
        each.name: _text(each, known[each.name])
        if each.name in known and not mask.telling_key(each.name)
        else _default(each)
        for each in params.describe(registry.module(type).Params)
    }


def priority(text: str) -> tuple[int, str]:
    """(the priority, "") or (0, what is wrong with it)."""
    if not text.strip():
        return 0, ""
    value, problem = accept(PRIORITY, text)
    return value or 0, f"{problem} {PRIORITY.range}" if problem else ""


def _default(each: Param) -> str:
    return "" if each.default is MISSING else _text(each, each.default)


def _text(each: Param, value: object) -> str:
    if each.type is bool:
        return "on" if value in (True, "on") else "off"
    return "" if value is None else board.told(value)
