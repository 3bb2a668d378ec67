"""fields: what a filter of the URL can be: text, words, a length of time, a moment.

What cannot be read is refused with a sentence that says how to write it.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from audit import clock

UNITS = {
    "ms": 0.001,
    "s": 1,
    "sec": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
}  # seconds
LONGEST = 5_000  # characters; SQLite refuses to look for 50,000 bytes
_LENGTH = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*([a-z]{1,3})\s*", re.ASCII)


def length(text: str) -> timedelta:
    """A length of time as people write it: 50ms, 2.5 s, 10 min, 24h, 7d. ValueError if it is none."""
    match = _LENGTH.fullmatch(text.lower())
    if match is None or match[2] not in UNITS:
        raise ValueError(f"{text!r} is no length of time")
    return timedelta(seconds=float(match[1]) * UNITS[match[2]])


class VisibleTextField(forms.CharField):
    """Text as the ledger keeps it: a NUL is looked for as the sign that stands for it."""

    def __init__(self, **options: Any) -> None:
        """As CharField; of at most LONGEST characters, unless a bound is given."""
        super().__init__(**{"max_length": LONGEST, **options})

    def to_python(self, value: Any) -> str:
        """The text with what cannot be stored replaced, as `audit.text` does."""
        shown = (value or "").replace("\x00", "\u2400")
        return super().to_python(shown.encode("utf-8", "replace").decode()) or ""


class WordsField(VisibleTextField):
    """Words with commas between them; each stands for itself."""

    def clean(self, value: Any) -> list[str]:
        """The words, without blanks around them, each once."""
        return list(
            dict.fromkeys(
                word
                for part in super().clean(value).split(",")
                if (word := part.strip())
            )
        )


class LengthField(VisibleTextField):
    """A length of time: `50ms`, `2s`, `10 min`."""

    def clean(self, value: Any) -> timedelta | None:
        """The length, or None where the field is empty."""
        text = super().clean(value)
        try:
            return length(text) if text else None
        except (ValueError, OverflowError):
            raise forms.ValidationError(
                f"“{text}” is no length of time. Write for example 50 ms, 2 s, 10 min or 24 h."
            ) from None


class MomentField(VisibleTextField):
    """A moment: an ISO time in the page's zone, or a length of time before now."""

    def clean(self, value: Any) -> "Moment | None":
        """The moment with the words it was asked by, or None where the field is empty."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return Moment(at=clock.now() - (back := length(text)), back=back, text=text)
        except (ValueError, OverflowError):
            pass
        try:
            found = parse_datetime(
                text if re.search(r"[T ]", text) else f"{text} 00:00"
            )
        except ValueError:  # well formed, and no day of the calendar
            found = None
        if found is None:
            raise forms.ValidationError(
                f"“{text}” is no moment. Write 24 h or 7 d for that long ago, or a time such as 2026-11-29 14:00."
            )
        aware = found if timezone.is_aware(found) else timezone.make_aware(found)
        return Moment(at=aware, back=None, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A bound of a time range, and how it was asked for."""

    at: datetime
    back: timedelta | None  # set: so long before now
    text: str
