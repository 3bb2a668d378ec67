"""ansi: colour and weight of terminal output, as marked up text.

Only the codes for colour, bold, dim, italic and underline mean anything here; other
escape sequences move a cursor that a page does not have, and are left out. Everything
else is text, made visible and escaped like any other.
"""

import re

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from audit import words

_SEQUENCE = re.compile(
    r"\x1b(?:\[([0-9;:]*)m|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-Z\\^_=>78])"
)
_STYLES = {1: "ab", 2: "ad", 3: "ai", 4: "au"}
_ENDS = {22: ("ab", "ad"), 23: ("ai",), 24: ("au",)}
_COLOURS = {**{n: n - 30 for n in range(30, 38)}, **{n: n - 90 for n in range(90, 98)}}
_LONGEST = 20  # codes of one sequence that are read


def marked_up(text: str, *, limit: int) -> SafeString:
    """The text with its colours; of plain text, the text."""
    if "\x1b" not in text:
        return escape(words.shown(text, limit=limit))
    parts, style, place = [], _Style(), 0
    kept = text[:limit]
    for found in _SEQUENCE.finditer(kept):
        parts.append(style.around(kept[place : found.start()]))
        place = found.end()
        if found[1] is not None:
            style.read(found[1])
    parts.append(style.around(kept[place:]))
    if len(text) > limit:
        parts.append(format_html("\u2026 ({} characters)", f"{len(text):,}"))
    return mark_safe("".join(parts))  # noqa: S308 - parts made by format_html


class _Style:
    """What the codes so far ask for."""

    def __init__(self) -> None:
        self.colour: int | None = None
        self.marks: set[str] = set()

    def around(self, text: str) -> SafeString:
        """A stretch of text in this style."""
        if not text:
            return SafeString("")
        shown = words.shown(text, limit=len(text))
        colour = () if self.colour is None else (f"a{self.colour}",)
        classes = " ".join((*colour, *sorted(self.marks)))
        if not classes:
            return escape(shown)
        return format_html('<b class="{}">{}</b>', classes, shown)

    def read(self, codes: str) -> None:
        """Take over the codes of one sequence; those that say nothing here are skipped."""
        numbers = [int(code or 0) for code in re.split("[;:]", codes[:100])[:_LONGEST]]
        while numbers:
            code = numbers.pop(0)
            if code in (38, 48):  # one of 256 colours, or any: five or two numbers long
                del numbers[: 4 if numbers[:1] == [2] else 2]
            elif code == 0:
                self.colour = None
                self.marks.clear()
            elif code == 39:
                self.colour = None
            elif code in _COLOURS:
                self.colour = _COLOURS[code]
            elif code in _STYLES:
                self.marks.add(_STYLES[code])
            elif code in _ENDS:
                self.marks.difference_update(_ENDS[code])
