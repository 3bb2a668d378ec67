"""lines: a stretch of a transcript as HTML.

By plain formatting, because a page has a thousand of them: as a template they took a
third of a second. Whatever comes from outside passes `ansi.marked_up`, which escapes.
"""

from collections.abc import Iterator
from datetime import UTC

from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from audit import ansi, words
from audit.window import Shown, Window

LONGEST = 70_000  # characters of a line; the ledger keeps no longer ones


def html(window: Window, *, selected: int | None = None) -> SafeString:
    """The lines, and what was left out between them. `selected`: the number of a linked one."""
    return mark_safe("".join(_parts(window, selected)))  # noqa: S308 - see above


def _parts(window: Window, selected: int | None) -> Iterator[str]:
    zone = timezone.get_current_timezone()
    for line in window.lines:
        number, at = line.row.seq, line.row.at
        if line.gap:
            yield f'<div class="gap mr-warn">{words.plural(line.gap, "line")} left out here: the transcript had reached its limit</div>\n'
        local = at.astimezone(zone).isoformat(timespec="milliseconds")[11:23]
        utc = at.astimezone(UTC).isoformat(timespec="seconds")[:19]
        text = ansi.marked_up(line.row.text, limit=LONGEST)
        yield (
            f'<div id="L{number}"{_class(line, selected)}><a href="#L{number}">{number}</a>'
            f'<time datetime="{utc}Z" title="{utc.replace("T", " ")} UTC">{local}</time>'
            f"<em>{line.level}</em><span>{text}</span></div>\n"
        )


def _class(line: Shown, selected: int | None) -> str:
    classes = " ".join(
        filter(None, (line.tone, "sel" if line.row.seq == selected else ""))
    )
    return f' class="{classes}"' if classes else ""
