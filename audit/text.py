"""text: the one gate before any text is stored.

NUL and lone surrogates are made visible (PostgreSQL refuses both), length is capped
in the middle with the number left out, secrets are masked, and what JSON cannot
carry becomes text. Called by the ledger and the transcript; nobody else has to.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from audit import capture, mask

LIMIT = 65_536  # characters
DEEPEST = 32  # levels of JSON
# Read on both sides of a cut, so that a secret on the cut is seen whole and masked.
_MARGIN = 4_096  # characters
_QUICK = 512  # characters; longer text takes the long way
_NUL = "\N{SYMBOL FOR NULL}"


def gate(text: str, *, limit: int = LIMIT) -> str:
    """The text as it may be stored: at most `limit` characters, nothing secret."""
    try:
        storable = (
            len(text) <= _QUICK
            and len(text) <= limit
            and text.isascii()
            and "\0" not in text
        )
        if (
            storable
            and not mask.telling(text)
            and not mask.holds(text)
            and not ("\n" in text and mask.breakable())
        ):
            return text
        return _gated(text, limit)
    except (AttributeError, TypeError):  # not a string, whatever the types said
        return _gated(as_text(text), limit)


def gate_json(value: Any, *, limit: int = LIMIT) -> Any:
    """The value as JSON may store it, at most about `limit` characters in all.

    NaN, infinities, dates, sets and whatever else JSON has no word for become text;
    what stands under a telling key is masked; what is too much is left out and counted.
    """
    if value is None or value is True or value is False:
        return value
    return _Json(left=limit).pass_(value, depth=0)


def gate_lines(lines: Sequence[str], *, limit: int = LIMIT) -> list[str]:
    """Each line through the gate, and secrets that a line break tears in two."""
    return [gate(line, limit=limit) for line in _without_broken(lines)]


def register_secret(value: str, *, known: set[mask.Secret] | None = None) -> None:
    """Mask this value in everything that is stored from now on.

    `known`: of whom; None: of the attempt that runs here, if there is one.
    """
    mask.register(value, capture.known_here() if known is None else known)


def as_text(value: object) -> str:
    """Its text, whatever its __str__ does."""
    try:
        return str(value)
    except BaseException as problem:
        return f"({type(value).__name__} whose text could not be made: {type(problem).__name__})"


def visible(text: str) -> str:
    """The text with its NULs and lone surrogates made visible."""
    if "\0" in text:
        text = text.replace("\0", _NUL)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


def cut(text: str, *, limit: int, of: int | None = None, end: str | None = None) -> str:
    """Head and tail of the text, the number left out between them.

    `of`, `end`: the length of the whole, and its end, where `text` is only its beginning.
    """
    whole = len(text) if of is None else of
    if whole <= limit:
        return text
    if limit < 100:  # no room for a sentence
        return text[: limit - 1] + "…"
    room = limit - len(f" … {whole:,} of {whole:,} characters left out … ")
    tail = room // 4
    note = f" … {whole - room:,} of {whole:,} characters left out … "
    return text[: room - tail] + note + (text if end is None else end)[-tail:]


def _gated(text: str, limit: int) -> str:
    if len(text) <= limit + 2 * _MARGIN:
        return cut(_clean(text), limit=limit)
    # Only what will be kept is read: the text may have 200 million characters.
    reach = limit + _MARGIN
    return cut(
        _clean(text[:reach]), limit=limit, of=len(text), end=_clean(text[-reach:])
    )


def _clean(text: str) -> str:
    text = visible(text)
    if "\n" in text and mask.breakable():
        text = "\n".join(_without_broken(text.split("\n")))
    return mask.masked(text)


def _without_broken(lines: Sequence[str]) -> Sequence[str]:
    """Mask registered values that a line break tears in two."""
    if not mask.breakable():
        return lines
    mended = list(lines)
    for i in range(len(mended) - 1):
        if found := mask.across(mended[i], mended[i + 1]):
            mended[i] = mended[i][: -found[0]] + mask.MASK
            mended[i + 1] = mask.MASK + mended[i + 1][found[1] :]
    return mended


@dataclass(slots=True)
class _Json:
    """One pass over a value, and the room that is left."""

    left: int  # characters

    def pass_(self, value: Any, *, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            # Python refuses to print integers of over 4,300 digits.
            return (
                int(value)
                if value.bit_length() <= 1024
                else f"(an integer of {value.bit_length():,} bits)"
            )
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        if depth >= DEEPEST:
            return "… nested too deep"
        if isinstance(value, Mapping):
            return self._object(value, depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            return self._list(value, depth)
        return self._text(as_text(value))

    def _text(self, value: str) -> str:
        text = gate(value, limit=max(100, min(self.left, LIMIT)))
        self.left -= len(text)
        return text

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        passed: dict[str, Any] = {}
        for name, inner in value.items():
            if self.left <= 0:
                passed["…"] = f"{len(value) - len(passed):,} more left out"
                break
            key = gate(as_text(name), limit=200)
            self.left -= len(key) + 8
            secret = (
                mask.telling_key(key)
                and inner not in (None, "")
                and not isinstance(inner, bool)
            )
            passed[key] = mask.MASK if secret else self.pass_(inner, depth=depth + 1)
        return passed

    def _list(self, value: Iterable[Any], depth: int) -> list[Any]:
        items = list(islice(value, max(0, self.left)))
        passed: list[Any] = []
        for inner in items:
            if self.left <= 0:
                break
            self.left -= 8
            passed.append(self.pass_(inner, depth=depth + 1))
        missing = len(value) - len(passed)  # type: ignore[arg-type]
        return [*passed, f"… {missing:,} more left out"] if missing else passed
