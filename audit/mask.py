"""mask: take secrets out of text that is about to be kept.

Two kinds: values that somebody registered (read from an encrypted field, from the
environment), wherever they stand; and whatever stands under a telling key, such as
`password=`, `Authorization: Bearer`, or `postgres://user:…@`. Callers go through
`audit.text`; the cheap tests here (`telling`, `holds`) let clean text pass unread.

A registered value is known as long as one of those who registered it is there: the
settings' own with the process; an attempt's with its transcript, and so until its end
is stored, and while a thread that it left behind can still log. The last ones
registered, by whomever, are known after that too: RECENT characters of them.
"""

import json
import re
import threading
from collections import Counter, deque
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import quote, quote_plus
from weakref import WeakValueDictionary

MASK = "••••"
# Shorter values are words of every second line; masking them would hide the log
# and tell the secret at the same time.
SHORTEST = 6  # characters
RECENT = 100_000  # characters of the values registered last, whoever knows them
_GRAM = 4  # characters by which a part of a value is recognised
_HEAD = 2 * _GRAM - 1  # characters; one whole group stands at a place 0, 4, 8 ...
_LONG = 128  # characters; of longer forms only the head is indexed
_FEW = 24  # so many are looked for one by one


class Secret:
    """A registered value, in the forms to mask. It is known while somebody refers to it."""

    __slots__ = ("__weakref__", "_gone", "forms")

    def __init__(self, forms: frozenset[str]) -> None:
        self.forms = forms
        self._gone = _gone

    def __del__(self) -> None:
        """Leave the rest to the next `register`: this may run anywhere, inside its lock too."""
        self._gone.append(self.forms)


# Changed under the lock and in place, each step whole: other threads read meanwhile.
_lock = threading.Lock()
_secrets: WeakValueDictionary[str, Secret] = WeakValueDictionary()  # by their values
_recent: dict[str, Secret] = {}  # the one registered last at the end
_size = 0  # characters in _recent
_gone: deque[frozenset[str]] = deque()  # the forms of those that nobody refers to
_forms: Counter[str] = Counter()  # form -> how many secrets have it
_short: frozenset[str] = frozenset()  # the forms that are shorter than _HEAD
_long = 0  # how many forms are longer than _LONG
_grams: dict[str, tuple[str, ...]] = {}  # four characters -> the forms they stand in

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


def register(value: str, known: set[Secret] | None) -> None:
    """Mask this value from now on, also URL-encoded and as JSON writes it.

    `known`: all that the one who registers it knows; kept as long as that is there.
    A value of several lines (a private key) is also known by its lines.
    """
    global _size
    with _lock:
        secret = _secrets.get(value)
        if secret is None:
            secret = _secrets[value] = Secret(_forms_of(value))
            _learn(secret.forms)
        if known is not None:
            known.add(secret)
        if _recent.pop(value, None) is None:
            _size += len(value)
        _recent[value] = secret
        while _size > RECENT and len(_recent) > 1:
            oldest = next(iter(_recent))
            del _recent[oldest]
            _size -= len(oldest)
        while _gone:
            _forget(_gone.popleft())


def telling(text: str) -> bool:
    """Whether a key that tells of a secret may stand in it. Cheap; True proves nothing."""
    low = text.lower()
    for stem in _STEMS:  # noqa: SIM110 - a generator costs twice as much, 20,000 times a second
        if stem in low:
            return True
    return False


def holds(text: str) -> bool:
    """Whether a registered value stands in it."""
    return bool(_standing_in(text))


def breakable() -> bool:
    """Whether there is a value that a line break could tear in two."""
    return bool(_forms)


def masked(text: str) -> str:
    """The text without what must not be kept."""
    spans = _places(text)
    # In the text as it was: somebody's registered value may be the word "password".
    if telling(text):
        for pattern in (_ADDRESS, _KEYED, _OPTION, _BEARER):
            spans += map(_value, pattern.finditer(text))
    if not spans:
        return text
    parts, done = [], 0
    for start, end in sorted(spans):
        if start >= done:
            parts += [text[done:start], MASK]
        done = max(done, end)
    return "".join([*parts, text[done:]])


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
    likely = {*_grams.get(end[-_GRAM:], ()), *_grams.get(start[:_GRAM], ())}
    if _long:
        likely.update(_standing_in(end + start))
    for form in likely:
        # Only where it begins before the break and ends behind it.
        reach = len(form) - 1
        place = (end + start).find(form, max(0, len(end) - reach), len(end) + reach)
        if place >= 0:
            cut = len(end) - place
            blanks = len(before) - len(end), len(after) - len(start)
            return cut + blanks[0], len(form) - cut + blanks[1]
    return None


def goes_on(line: str) -> bool:
    """Whether the line may end with the first part of a registered value."""
    end = line.rstrip()
    return any(
        len(form) > len(end) - place and form.startswith(end[place:])
        for place in range(len(end) - _GRAM + 1)
        for form in _grams.get(end[place : place + _GRAM], ())
    )


def _forms_of(value: str) -> frozenset[str]:
    """The value as programs write it, without what is too short to mask."""
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
    return frozenset(form for form in forms if len(form) >= SHORTEST)


def _learn(forms: frozenset[str]) -> None:
    global _short, _long
    for form in forms:
        _forms[form] += 1
        if _forms[form] == 1:
            for gram in _grams_of(form):
                _grams[gram] = (*_grams.get(gram, ()), form)
            _long += len(form) > _LONG
            if len(form) < _HEAD:
                _short |= {form}


def _forget(forms: frozenset[str]) -> None:
    global _short, _long
    for form in forms:
        _forms[form] -= 1
        if not _forms[form]:
            del _forms[form]
            for gram in _grams_of(form):
                _grams[gram] = tuple(each for each in _grams[gram] if each != form)
                if not _grams[gram]:
                    del _grams[gram]
            _short -= {form}
            _long -= len(form) > _LONG


def _grams_of(form: str) -> set[str]:
    part = form if len(form) <= _LONG else form[:_HEAD]
    return {part[i : i + _GRAM] for i in range(len(part) - _GRAM + 1)}


def _standing_in(text: str) -> list[str]:
    """The registered values that stand in it, longest first: one may contain another."""
    found = [form for form in _likely_in(text) if form in text]
    if len(found) > 1:
        found.sort(key=lambda form: (-len(form), form))
    return found


def _likely_in(text: str) -> Collection[str]:
    """Those that may, by one look per four characters, however many values there are."""
    if len(_forms) <= _FEW:
        return tuple(_forms)
    grams = [text[i : i + _GRAM] for i in range(0, len(text), _GRAM)]
    if _grams.keys().isdisjoint(grams):
        return _short
    return _short.union(*(_grams.get(gram, ()) for gram in grams))


def _places(text: str) -> list[tuple[int, int]]:
    """Where registered values stand in it."""
    found = []
    for form in _standing_in(text):
        start = text.find(form)
        while start >= 0:
            found.append((start, start + len(form)))
            start = text.find(form, start + len(form))
    return found


def _value(match: re.Match[str]) -> tuple[int, int]:
    """Where the value behind a key stands, without its quotes, so that what was JSON stays JSON."""
    last = match.lastindex or 0
    start, end = match.span(last)
    value = match[last]
    for mark in ('\\"', '"', "'"):
        if value.startswith(mark):
            start += len(mark)
            if value.endswith(mark) and end - start >= len(mark):
                end -= len(mark)
            break
    return start, end
