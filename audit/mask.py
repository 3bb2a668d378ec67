"""mask: take secrets out of text that is about to be kept.

Two kinds: values that somebody registered (read from an encrypted field, from the
environment), wherever they stand; and whatever stands under a telling key, such as
`password=`, `Authorization: Bearer`, or `postgres://user:…@`. Callers go through
`audit.text`; the cheap tests here (`telling`, `holds`) let clean text pass unread.
"""

import json
import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

MASK = "••••"
# Shorter values are words of every second line; masking them would hide the log
# and tell the secret at the same time.
SHORTEST = 6  # characters
_GRAM = 4  # characters of a value by which its parts are recognised

_lock = threading.Lock()
_values: tuple[str, ...] = ()  # longest first: a value may contain another
_short: tuple[
    str, ...
] = ()  # those that may lie between two places of a multiple of _GRAM
_grams: dict[str, tuple[str, ...]] = {}  # four characters -> the values they stand in

# Cheap and in lower case. Every pattern below needs one of these.
_STEMS = (
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "key",
    "auth",
    "credential",
    "cookie",
    "bearer",
    "://",
)
_QUOTED = r""" \\"[^"]*" | "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*' | ["'][^\s"']+ """
_KEYED = re.compile(
    rf"""(?ix)
    ( (?: (?:passw(?:or)?d|passphrase|secret|pwd)[\w-]{{0,24}}
        | token | api[_-]?key | access[_-]?key | private[_-]?key | credentials? | authorization | cookie )
      \\?["']? \s{{0,4}} (?: =>? | : ) \s{{0,4}} )
    ( {_QUOTED}
    | (?:bearer|basic|digest|negotiate|token|aws4-[\w-]{{1,20}}) [ \t]+ [^\r\n"']+
    | [^\s,;&"'<>(){{}}\[\]]+ )
    """
)
_OPTION = re.compile(
    r"(?i)(--[\w-]{0,24}(?:password|passphrase|secret|token|key)\s{1,4})([^\s-]\S*)"
)
_BEARER = re.compile(r"(?i)(\bbearer\s{1,4})([\w.~+/=-]{8,})")
# Programs print a password as it was typed: in a database's address it may hold a slash.
_ADDRESS = re.compile(
    r"""(?ix) (://[^\s:/@"'<>]{0,200}:) ( [^\s/@"'<>]{1,400} (?=@) )
      | ((?:postgres(?:ql)?|mysql|mariadb|rediss?|amqps?|mongodb|smtps?)(?:\+\w{1,20})?://[^\s:/@"'<>]{0,200}:)
        ( [^\s@"'<>]{1,400} (?=@) )"""
)
_TELLING_END = (
    "password", "passwd", "pwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey",
    "secretkey", "authorization", "credential", "credentials", "cookie",
)  # fmt: skip


def register(value: str) -> None:
    """Mask this value from now on, also URL-encoded and as JSON writes it. For good.

    A value of several lines (a private key) is also known by its lines.
    """
    global _values, _short, _grams
    forms = {
        value,
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value)[1:-1],
    }
    if "\n" in value:
        forms |= {
            line.strip()
            for line in value.splitlines()
            if len(line.strip()) >= 16 and "-----" not in line
        }
    new = {form for form in forms if len(form) >= SHORTEST}
    if new <= set(_values):
        return
    with _lock:
        _values = tuple(sorted({*_values, *new}, key=lambda form: (-len(form), form)))
        _short = tuple(form for form in _values if len(form) < 2 * _GRAM - 1)
        grams = dict(_grams)  # a copy: other threads read the old one meanwhile
        for form in new:
            for gram in {form[i : i + _GRAM] for i in range(len(form) - _GRAM + 1)}:
                grams[gram] = (*grams.get(gram, ()), form)
        _grams = grams


def telling(text: str) -> bool:
    """Whether a key that tells of a secret may stand in it. Cheap; True proves nothing."""
    low = text.lower()
    for stem in _STEMS:  # noqa: SIM110 - a generator costs twice as much, 20,000 times a second
        if stem in low:
            return True
    return False


def holds(text: str) -> bool:
    """Whether a registered value stands in it."""
    # A value of 7 and more has a whole group of four at one of the places 0, 4, 8 ...
    # of any text around it: one look per four characters, however many values there are.
    few = len(_values) <= 24
    if few or not _grams.keys().isdisjoint(
        [text[i : i + _GRAM] for i in range(0, len(text), _GRAM)]
    ):
        return any(value in text for value in _values)
    return any(value in text for value in _short)


def breakable() -> bool:
    """Whether there is a value that a line break could tear in two."""
    return bool(_values)


def masked(text: str) -> str:
    """The text without what must not be kept."""
    if holds(text):
        for value in _values:
            if value in text:
                text = text.replace(value, MASK)
    if telling(text):
        text = _ADDRESS.sub(lambda m: f"{m[1] or m[3]}{MASK}", text)
        text = _KEYED.sub(_without_value, text)
        text = _OPTION.sub(rf"\1{MASK}", text)
        text = _BEARER.sub(rf"\1{MASK}", text)
    return text


@lru_cache(maxsize=4096)
def telling_key(key: str) -> bool:
    """Whether what stands under this key of a JSON object is a secret."""
    plain = "".join(filter(str.isalnum, key.lower()))
    return plain.endswith(_TELLING_END) or "password" in plain or "secret" in plain


def across(before: str, after: str) -> tuple[int, int] | None:
    """How much of a registered value ends the first line and begins the second.

    Lengths in characters, blanks around the break included. None: no value is broken here.
    """
    end, start = before.rstrip(), after.lstrip()
    for value in {*_grams.get(end[-_GRAM:], ()), *_grams.get(start[:_GRAM], ())}:
        for cut in (
            *_ends_of_part(value, end[-_GRAM:]),
            *_short_parts(value, start[:_GRAM]),
        ):
            if start.startswith(value[cut:]) and end.endswith(value[:cut]):
                blanks = len(before) - len(end), len(after) - len(start)
                return cut + blanks[0], len(value) - cut + blanks[1]
    return None


def goes_on(line: str) -> bool:
    """Whether the line may end with the first part of a registered value."""
    end = line.rstrip()
    gram = end[-_GRAM:]
    return any(
        end.endswith(value[:cut])
        for value in _grams.get(gram, ())
        for cut in _ends_of_part(value, gram)
    )


def _ends_of_part(value: str, gram: str) -> Iterator[int]:
    """Lengths of the parts of the value that end with these characters."""
    place = value.find(gram) if gram else -1
    while 0 <= place < len(value) - len(gram):
        yield place + len(gram)
        place = value.find(gram, place + 1)


def _short_parts(value: str, gram: str) -> Iterator[int]:
    """Lengths of the first parts too short for a group of four, by what follows them."""
    yield from (cut for cut in range(1, _GRAM) if gram and value.startswith(gram, cut))


def _without_value(match: re.Match[str]) -> str:
    """Keep the quotes, so that what was JSON stays JSON."""
    value = match[2]
    for mark in ('\\"', '"', "'"):
        if value.startswith(mark):
            return f"{match[1]}{mark}{MASK}{mark if value.endswith(mark[-1]) else ''}"
    return f"{match[1]}{MASK}"
