"""window: a stretch of a transcript, of at most LINES lines, with what lies around it.

A page shows the newest stretch and loads others on demand, so a hundred thousand
lines cost as much as a thousand. The cursor is the line's number: a reload shows the
same lines, and nothing is asked for twice.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from audit import clock, queries, transcript
from audit.models import Line, Run
from audit.transcript import LineRow

LINES = 1000  # of a stretch


@dataclass(frozen=True, slots=True)
class Shown:
    """A line as the page draws it."""

    row: LineRow
    gap: int  # lines left out right before it
    tone: str  # "" | "w" | "e"
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of lines."""

    lines: tuple[Shown, ...]
    above: int  # the number of the last line before it; 0: it begins with the first
    below: bool  # whether there are more lines after it
    first: int  # the number of its first line
    last: int  # the number of its last line: where following goes on


def tail(claim_id: UUID) -> Window:
    """The newest lines."""
    newest = _before(claim_id, None)
    return _made(newest[-LINES:], above=newest[0].seq if len(newest) > LINES else 0)


def before(claim_id: UUID, seq: int) -> Window:
    """The lines right above one."""
    found = _before(claim_id, seq)
    return _made(
        found[-LINES:], above=found[0].seq if len(found) > LINES else 0, begun=False
    )


def after(claim_id: UUID, seq: int) -> Window:
    """The lines below one, as far as they are written."""
    found = queries.lines(claim_id, after=seq, limit=LINES + 1)
    return _made(found[:LINES], above=seq, below=len(found) > LINES, last=seq)


def around(claim_id: UUID, seq: int) -> Window:
    """The lines from a little above one: what a link to a line opens."""
    start = max(seq - LINES // 4, 0)
    return after(claim_id, start)


def everything(claim_id: UUID) -> Iterator[LineRow]:
    """All lines, a stretch at a time."""
    seq = 0
    while found := queries.lines(claim_id, after=seq, limit=LINES):
        yield from found
        seq = found[-1].seq


def level(row: LineRow) -> str:
    """Its level as a word."""
    return logging.getLevelName(row.level)


def _before(claim_id: UUID, seq: int | None) -> list[LineRow]:
    """The last LINES + 1 lines before one, or of all; oldest first."""
    since = clock.uuid7_time(claim_id) - queries.BEFORE_CLAIM
    found = Line.objects.filter(claim_id=claim_id, at__gte=since)
    if seq is not None:
        found = found.filter(seq__lt=seq)
    rows = list(
        found.order_by("-seq").values_list("claim_id", "seq", "at", "level", "text")[
            : LINES + 1
        ]
    )
    if rows:
        return [LineRow(*row) for row in reversed(rows)]
    short = (
        Run.objects.filter(id=claim_id, finished_at__gte=since)
        .values_list("transcript", flat=True)
        .first()
    )
    lines = transcript.parse(short or "", claim_id)
    return [line for line in lines if seq is None or line.seq < seq][-LINES - 1 :]


def _made(
    rows: list[LineRow],
    *,
    above: int,
    below: bool = False,
    last: int = 0,
    begun: bool = True,
) -> Window:
    shown, previous = [], above if begun else (rows[0].seq - 1 if rows else 0)
    for row in rows:
        tone = (
            "e"
            if row.level >= logging.ERROR
            else "w"
            if row.level >= logging.WARNING
            else ""
        )
        shown.append(Shown(row, row.seq - previous - 1, tone, level(row)))
        previous = row.seq
    return Window(
        lines=tuple(shown),
        above=above,
        below=below,
        first=rows[0].seq if rows else 0,
        last=rows[-1].seq if rows else last,
    )
