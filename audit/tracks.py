"""tracks: the attempts of an item, drawn under each other over one stretch of time.

SVG made by the server: places by attribute, fills by class, a sentence for those who
cannot see it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from audit import drawings, words
from audit.rows import LateRow
from audit.timeline import Attempt

LEFT, WIDE, ROW = 70, 690, 24  # px: where time begins, the whole width, height of a row
SAYING = 195  # px that the words beside a late result need
MARKS = ((0.0, "start"), (1 / 3, "middle"), (2 / 3, "middle"), (1.0, "end"))


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a moment stands, from left to right."""

    first: datetime
    span: float  # seconds
    right: int  # px, where time ends

    def x(self, moment: datetime) -> float:
        """Rounded: what format_html is given is text by the time it is formatted."""
        return self.at((moment - self.first).total_seconds() / self.span)

    def at(self, part: float) -> float:
        """The place of a part of the span."""
        return round(LEFT + (self.right - LEFT) * min(max(part, 0.0), 1.0), 1)


def tracks(
    attempts: Sequence[Attempt], lates: Mapping[UUID, LateRow], *, now: datetime
) -> SafeString:
    """The attempts of an item under each other, with late results as a dotted tail."""
    begun = [
        (attempt.started_at, attempt) for attempt in attempts if attempt.started_at
    ]
    first = min(at for at, _ in begun)
    ends = [attempt.finished_at or now for _, attempt in begun] + [
        late.arrived_at for late in lates.values()
    ]
    span = max((max(ends) - first).total_seconds(), 0.001)
    # The words of a late result stand right of it: time ends where they have room.
    scale = Scale(first, span, WIDE - SAYING if lates else WIDE)
    rows = [
        _row(
            attempt,
            started,
            lates.get(attempt.claim_id),
            y=12 + ROW * place,
            scale=scale,
            now=now,
        )
        for place, (started, attempt) in enumerate(begun)
    ]
    height = ROW * len(begun) + 18
    return format_html(
        '<svg class="mr-svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">{3}{4}</svg>',
        WIDE,
        height,
        "; ".join(
            _said(attempt, started, lates.get(attempt.claim_id))
            for started, attempt in begun
        ),
        format_html_join("", "{}", ((row,) for row in rows)),
        _axis(scale, y=height - 4),
    )


def _row(
    attempt: Attempt,
    started: datetime,
    late: LateRow | None,
    *,
    y: int,
    scale: Scale,
    now: datetime,
) -> SafeString:
    begin, end = scale.x(started), scale.x(attempt.finished_at or now)
    fill = "f-accent" if attempt.live else drawings.TONES.get(attempt.state, "f-bar")
    bar = format_html(
        '<text class="on" x="0" y="{}">Attempt {}</text><rect class="f-track" x="{}" y="{}" width="{}" height="8" rx="2"/>'
        '<rect class="{}" x="{}" y="{}" width="{}" height="8" rx="2"/>',
        y + 8, attempt.number, LEFT, y, max(round(end - LEFT, 1), 2.0), fill, begin, y, max(round(end - begin, 1), 2.0),
    )  # fmt: skip
    return (
        bar if late is None else bar + _tail(end, scale.x(late.arrived_at), late, y=y)
    )


def _tail(end: float, at: float, late: LateRow, *, y: int) -> SafeString:
    return format_html(
        '<line class="l-fail" x1="{}" x2="{}" y1="{}" y2="{}" stroke-dasharray="2 3"/>'
        '<circle class="f-bg l-fail" cx="{}" cy="{}" r="4"/><text class="on" x="{}" y="{}">late result {}, not counted</text>',
        end, at, y + 4, y + 4, at, y + 4, round(at + 9, 1), y + 8, words.precise(late.arrived_at)[:8],
    )  # fmt: skip


def _axis(scale: Scale, *, y: int) -> SafeString:
    form = (
        "%H:%M" if scale.span > 600 else "%H:%M:%S"
    )  # seconds: below ten minutes minutes say too little
    marks = [
        (
            scale.at(part),
            y,
            anchor,
            f"{timezone.localtime(scale.first + timedelta(seconds=scale.span * part)):{form}}",
        )
        for part, anchor in MARKS
    ]
    return format_html_join("", '<text x="{}" y="{}" text-anchor="{}">{}</text>', marks)


def _said(attempt: Attempt, started: datetime, late: LateRow | None) -> str:
    begun = words.precise(started)[:8]
    end = (
        "and runs"
        if attempt.finished_at is None
        else f"to {words.precise(attempt.finished_at)[:8]}, {attempt.state}"
    )
    tail = (
        f", its late result came at {words.precise(late.arrived_at)[:8]}"
        if late
        else ""
    )
    return f"Attempt {attempt.number} from {begun} {end}{tail}"
