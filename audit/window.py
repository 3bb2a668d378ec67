"""window: a stretch of a transcript, of at most LINES lines, with what lies around it.

A page opens with the FIRST of them and loads others as its reader scrolls, so a
hundred thousand lines cost as much as two hundred. The cursor is the line's number: a
reload shows the same lines, and nothing is asked for twice. Text and level are looked
for here, in all lines of the transcript and not only in those that a page has loaded.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, Q, QuerySet

from audit import clock, queries, transcript
from audit.models import Line, Run
from audit.transcript import LineRow

FIRST = 200  # lines that a page opens with: they are in the way of its first paint
LINES = 1000  # of any other stretch
LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines of a transcript are shown."""

    text: str = ""
    level: int = 0  # at least

    def __bool__(self) -> bool:
        return bool(self.text or self.level)

    @property
    def name(self) -> str:
        """Of the level, as an address has it."""
        return next((name for name, n in LEVELS.items() if n == self.level), "")

    def among(self, lines: QuerySet[Line]) -> QuerySet[Line]:
        """Those of the stored ones."""
        found = lines.filter(text__icontains=self.text) if self.text else lines
        return found.filter(level__gte=self.level) if self.level else found

    def takes(self, line: LineRow) -> bool:
        """Whether this line is one."""
        return line.level >= self.level and self.text.casefold() in line.text.casefold()


ALL = Wanted()


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
    last: int  # the number of the last line looked at: where following goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """What a transcript has, without its lines."""

    last: int  # the number of the newest line; 0: none yet
    at: datetime | None  # of the newest line
    warnings: int
    errors: int


EMPTY = Window(lines=(), above=0, below=False, first=0, last=0)
NOTHING = Sum(last=0, at=None, warnings=0, errors=0)


def tail(claim_id: UUID, *, wanted: Wanted = ALL) -> Window:
    """The newest lines."""
    end = _end(claim_id) if wanted else 0
    newest = _before(claim_id, end + 1 if end else None, wanted, FIRST)
    above = newest[0].seq if len(newest) > FIRST else 0
    return _made(newest[-FIRST:], above=above, last=end, wanted=wanted)


def before(claim_id: UUID, seq: int, *, wanted: Wanted = ALL) -> Window:
    """The lines right above one."""
    found = _before(claim_id, seq, wanted, LINES)
    above = found[0].seq if len(found) > LINES else 0
    return _made(found[-LINES:], above=above, begun=False, wanted=wanted)


def after(claim_id: UUID, seq: int, *, wanted: Wanted = ALL) -> Window:
    """The lines below one, as far as they are written."""
    return _below(claim_id, seq, wanted, LINES)


def around(claim_id: UUID, seq: int) -> Window:
    """The lines from a little above one: what a link to a line opens."""
    return _below(claim_id, max(seq - FIRST // 4, 0), ALL, FIRST)


def everything(claim_id: UUID) -> Iterator[LineRow]:
    """All lines, a stretch at a time."""
    seq = 0
    while found := queries.lines(claim_id, after=seq, limit=LINES):
        yield from found
        seq = found[-1].seq


def summed(claim_id: UUID) -> Sum:
    """Newest line, warnings and errors: by one look over all lines."""
    found = _stored(claim_id).aggregate(
        last=Max("seq"),
        at=Max("at"),
        warnings=Count("seq", filter=Q(level__gte=30, level__lt=40)),
        errors=Count("seq", filter=Q(level__gte=40)),
    )
    if found["last"]:
        return Sum(**found)
    short = _short(claim_id)
    return Sum(
        last=short[-1].seq if short else 0,
        at=short[-1].at if short else None,
        warnings=sum(30 <= line.level < 40 for line in short),
        errors=sum(line.level >= 40 for line in short),
    )


def newest(claim_id: UUID) -> Sum:
    """The newest line alone."""
    found = _stored(claim_id).order_by("-seq").values_list("seq", "at").first()
    seq, at = found or (0, None)
    return Sum(last=seq, at=at, warnings=0, errors=0)


def level(row: LineRow) -> str:
    """Its level as a word."""
    return logging.getLevelName(row.level)


def _stored(claim_id: UUID) -> QuerySet[Line]:
    since = clock.uuid7_time(claim_id) - queries.BEFORE_CLAIM
    return Line.objects.filter(claim_id=claim_id, at__gte=since)


def _short(claim_id: UUID) -> list[LineRow]:
    """The lines of a transcript that stands in its run's row."""
    since = clock.uuid7_time(claim_id) - queries.BEFORE_CLAIM
    found = Run.objects.filter(id=claim_id, finished_at__gte=since)
    short = found.values_list("transcript", flat=True).first()
    return transcript.parse(short or "", claim_id)


def _below(claim_id: UUID, seq: int, wanted: Wanted, most: int) -> Window:
    # What is written meanwhile is behind `end`, so that it is not passed over.
    end = _end(claim_id) if wanted else 0
    found = _after(claim_id, seq, end, wanted, most)
    below = len(found) > most
    last = max(seq, end)
    return _made(found[:most], above=seq, below=below, last=last, wanted=wanted)


def _end(claim_id: UUID) -> int:
    """The number of the newest stored line; 0: none is, or it is a short transcript."""
    return newest(claim_id).last


def _before(
    claim_id: UUID, seq: int | None, wanted: Wanted, most: int
) -> list[LineRow]:
    """The last `most` + 1 lines before one, or of all; oldest first."""
    stored = _stored(claim_id)
    found = wanted.among(stored if seq is None else stored.filter(seq__lt=seq))
    rows = list(_rows(found.order_by("-seq"), most))
    if rows or (wanted and stored.exists()):
        return rows[::-1]
    lines = [
        line
        for line in _short(claim_id)
        if (seq is None or line.seq < seq) and wanted.takes(line)
    ]
    return lines[-most - 1 :]


def _after(
    claim_id: UUID, seq: int, end: int, wanted: Wanted, most: int
) -> list[LineRow]:
    """The first `most` + 1 lines behind one, up to `end`; oldest first."""
    if not wanted:
        return queries.lines(claim_id, after=seq, limit=most + 1)
    if end:
        stored = _stored(claim_id).filter(seq__gt=seq, seq__lte=end)
        return list(_rows(wanted.among(stored).order_by("seq"), most))
    lines = (line for line in _short(claim_id) if line.seq > seq)
    return [line for line in lines if wanted.takes(line)][: most + 1]


def _rows(found: QuerySet[Line], most: int) -> Iterator[LineRow]:
    shown = found.values_list("claim_id", "seq", "at", "level", "text")
    return (LineRow(*row) for row in shown[: most + 1])


def _made(
    rows: list[LineRow],
    *,
    above: int,
    below: bool = False,
    last: int = 0,
    begun: bool = True,
    wanted: Wanted = ALL,
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
        # Between lines that were looked for, others lie that were not.
        gap = 0 if wanted else row.seq - previous - 1
        shown.append(Shown(row, gap, tone, level(row)))
        previous = row.seq
    ended = rows[-1].seq if rows else 0
    return Window(
        lines=tuple(shown),
        above=above,
        below=below,
        first=rows[0].seq if rows else 0,
        last=ended if below else max(ended, last),
    )
