"""drawn: how far a job is, as small SVG pictures made by the server."""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audit import words
from audit.drawings import rectangles

WIDE = 72  # px, of the bar in a list
EDGE = 0.15  # of the track: where its start and its limit are written


def progress(percent: int) -> SafeString:
    """62 %, as a bar with its number."""
    filled = WIDE * max(0, min(100, percent)) / 100
    return format_html(
        '<span class="mr-nowrap"><svg class="mr-svg inline" width="72" height="8" viewBox="0 0 72 8" aria-hidden="true">{}</svg> {}</span>',
        rectangles(
            [("f-track", 0, 1, WIDE, 6), ("f-accent", 0, 1, filled, 6)], rounded=1
        ),
        f"{percent}{words.SPACE}%",
    )


def track(
    *,
    started: datetime,
    ran: timedelta,
    limit: timedelta,
    usual: timedelta | None,
    silent: timedelta | None,
) -> SafeString:
    """How long it has run of what it may, where such jobs usually end, and since when it is silent."""
    whole = max(ran, limit, timedelta(seconds=1))

    def at(span: timedelta) -> str:
        return f"{100 * min(span, whole) / whole:.1f}%"

    said = f"Ran {words.duration(ran)} of at most {words.duration(limit)}"
    quiet = end = ""
    if silent is not None:
        said += f"; silent for the last {words.duration(silent)}"
        quiet = format_html(
            '<rect class="f-warn" x="{}" y="14" width="{}" height="2"/>',
            at(max(ran - silent, timedelta())),
            at(min(silent, ran)),
        )
    if usual is not None and usual < limit:
        end = format_html(
            '<line class="l-rule" x1="{0}" x2="{0}" y1="0" y2="18"/>', at(usual)
        )
        # Near an edge it would run into the words that stand there.
        if EDGE < usual / whole < 1 - EDGE:
            end += format_html(
                '<text class="on" x="{}" y="30"{}>usual end: {}</text>',
                at(usual),
                format_html(' text-anchor="{}"', "end") if usual > whole / 2 else "",
                words.duration(usual),
            )
    return format_html(
        '<svg class="mr-svg full" width="100%" height="34" role="img" aria-label="{}">'
        '<rect class="f-track" y="2" width="100%" height="10" rx="2"/><rect class="f-accent" y="2" width="{}" height="10" rx="2"/>{}{}'
        '<text x="0" y="30">{}</text><text x="100%" y="30" text-anchor="end">limit {}</text></svg>',
        said,
        at(ran),
        quiet,
        end,
        f"{timezone.localtime(started):%H:%M}",
        words.duration(limit),
    )
