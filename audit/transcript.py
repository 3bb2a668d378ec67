"""transcript: the numbered lines of one attempt, from the logger to the ledger.

Written by any thread of the attempt, taken twice a second by whoever stores the lines
of long runs, closed by the finish. Memory is bounded: beyond the cap the first lines
stay, the last ones are kept in a ring, and what lies between is counted. A line's
number never changes, so a gap in the numbers is exactly what was left out.
"""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import batched
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from audit import clock, mask, partitions, sql, text, wire

LINES = 100_000  # lines of a transcript that are kept
BYTES = 10_000_000  # bytes of text that are kept, as they lie in memory
TAIL_LINES = 10_000  # of them the last ones
TAIL_BYTES = 1_000_000
LINE = text.LIMIT  # characters of a line
ENTRY = 1_000_000  # characters of one entry, which may have many lines
SHORT = 8_192  # bytes; a transcript that fits is stored in the run's own row
AT_ONCE = 1_000  # lines of one INSERT

_EMPTY = len("") + "".__sizeof__()
_WORDS = {level: logging.getLevelName(level) for level in (10, 20, 30, 40, 50)}
_LEVELS = {word: level for level, word in _WORDS.items()}


class LineRow(NamedTuple):
    """One line. A tuple: a busy worker makes 20,000 a second, and `store` turns rows to columns."""

    claim_id: UUID
    seq: int  # 1, 2, 3 ...; a gap is what the cap left out
    at: datetime
    level: int  # the numbers of `logging`
    text: str


class Closed(NamedTuple):
    """What is left to store at the end."""

    short: str  # all of it, for the run's own row; "" where lines are, or were, stored
    rest: list[LineRow]  # lines to store
    line_count: int  # lines stored, here and before
    dropped: int  # lines that the cap left out


class Transcript:
    """The lines of one attempt that are not stored yet."""

    __slots__ = (
        "_bytes",
        "_claim_id",
        "_closed",
        "_handed",
        "_lines",
        "_lock",
        "_raw",
        "_ring",
        "_ring_bytes",
        "_seq",
        "_stored",
        "dropped",
        "known",
    )

    def __init__(self, *, claim_id: UUID) -> None:
        self._claim_id = claim_id
        self._lock = threading.Lock()
        self._lines: list[LineRow] = []
        self._handed: list[LineRow] = []  # handed out, and not known to be stored
        self._ring: deque[LineRow] | None = None  # None: the cap is not reached
        self._seq = self._bytes = self._ring_bytes = self._stored = 0
        self._raw = (
            ""  # the last line as it came, for a secret that a line break tears in two
        )
        self._closed: Closed | None = None
        self.dropped = 0  # lines left out so far
        self.known: set[mask.Secret] = set()  # by the attempt

    def write(self, level: int, entry: str) -> None:
        """Append an entry, a line per line of it. Never raises: a log line fails no run."""
        try:
            if len(entry) > ENTRY:
                entry = text.gate(entry, limit=ENTRY)
            at = clock.now()
            with self._lock:
                for line in entry.split("\n") if "\n" in entry else (entry,):
                    self._append(at, level, line)
        except Exception:
            with self._lock:
                self.dropped += 1

    def take(self, *, last: bool = False) -> list[LineRow]:
        """The lines to store now, but those that the end will decide on.

        Handed out again, by the end too, until `stored` says that they are. `last`: all
        there are, since the end may never come: whoever runs it is given up.
        """
        with self._lock:
            lines, self._lines = self._lines, []
            if last and self._ring:
                lines += self._tail()
                self._ring, self._ring_bytes = deque(), 0
            # Half a secret waits for its other half, so that both can be masked.
            elif not last and lines and self._ring is None and mask.goes_on(self._raw):
                self._lines.append(lines.pop())
            self._handed += lines
            return self._handed.copy()

    def stored(self, lines: int) -> None:
        """The first so many of what `take` gave are committed."""
        with self._lock:
            if self._closed is None:
                del self._handed[:lines]
                self._stored += lines

    def leave_out(self) -> None:
        """The database refuses what `take` gave: count it as left out."""
        with self._lock:
            self.dropped += len(self._handed)
            self._handed = []

    def close(self) -> Closed:
        """End it. The same answer as often as it is asked; later lines are ignored."""
        with self._lock:
            if self._closed is None:
                self._closed = self._close()
                self._handed, self._lines, self._ring = [], [], None
            return self._closed

    def discard(self) -> None:
        """Close without lines: the database refuses them, they are counted as left out."""
        with self._lock:
            gone = self._closed or self._close()
            left = len(gone.rest) or (gone.line_count - self._stored)
            self._closed = Closed("", [], gone.line_count - left, gone.dropped + left)
            self._handed, self._lines, self._ring = [], [], None

    def _append(self, at: datetime, level: int, line: str) -> None:
        if self._closed is not None:
            return
        self._seq += 1
        if self._ring is not None:
            self._append_to_ring(
                self._ring,
                LineRow(
                    self._claim_id,
                    self._seq,
                    at,
                    level,
                    line if len(line) <= LINE else text.gate(line, limit=LINE),
                ),
            )
            return
        kept = self._mend(line) if self._raw else text.gate(line, limit=LINE)
        self._raw = line[-text.LIMIT :] if mask.breakable() else ""
        self._lines.append(LineRow(self._claim_id, self._seq, at, level, kept))
        self._bytes += kept.__sizeof__() - _EMPTY
        if self._seq >= LINES - TAIL_LINES or self._bytes >= BYTES - TAIL_BYTES:
            self._ring = deque()

    def _mend(self, line: str) -> str:
        """The line without the second half of a secret that the line before began."""
        found = mask.across(self._raw, line)
        if found is None:
            return text.gate(line, limit=LINE)
        if self._lines:
            whole = text.gate(self._raw[: -found[0]] + mask.MASK, limit=LINE)
            self._lines[-1] = self._lines[-1]._replace(text=whole)
        return text.gate(mask.MASK + line[found[1] :], limit=LINE)

    def _append_to_ring(self, ring: deque[LineRow], row: LineRow) -> None:
        # Read by the gate at the end: most of these lines are never stored.
        ring.append(row)
        self._ring_bytes += row.text.__sizeof__() - _EMPTY
        while len(ring) > TAIL_LINES or self._ring_bytes > TAIL_BYTES:
            self._ring_bytes -= ring.popleft().text.__sizeof__() - _EMPTY
            self.dropped += 1

    def _close(self) -> Closed:
        whole = self._ring is None
        rest = self._handed + self._lines if self._handed else self._lines
        if not whole:
            rest = rest + self._tail()
        count = self._stored + len(rest)
        begun = self._stored or self._handed
        if whole and not begun and self._bytes <= SHORT:
            short = _short(rest)
            if short is not None:
                return Closed(short, [], count, self.dropped)
        return Closed("", rest, count, self.dropped)

    def _tail(self) -> list[LineRow]:
        rows = list(self._ring or ())
        # The line before the tail is read along: it may hold the first half of a secret.
        raw = [self._raw, *(row.text for row in rows)]
        kept = text.gate_lines(raw, limit=LINE)[1:]
        return [row._replace(text=line) for row, line in zip(rows, kept, strict=True)]


def store(lines: Sequence[LineRow]) -> None:
    """Write lines, in the caller's transaction. A line that is there stays as it is."""
    if not lines:
        return
    partitions.make_room(
        "audit_line", [min(line.at for line in lines), max(line.at for line in lines)]
    )
    for some in batched(lines, AT_ONCE, strict=False):
        if connection.vendor == "postgresql":
            columns = map(list, zip(*some, strict=True))
            wire.send(
                sql.INSERT_LINES, dict(zip(LineRow._fields, columns, strict=True))
            )
        else:
            at = connection.ops.adapt_datetimefield_value
            rows = [
                (line.claim_id.hex, line.seq, at(line.at), line.level, line.text)
                for line in some
            ]
            with connection.cursor() as cursor:
                cursor.executemany(sql.INSERT_LINE, rows)


def parse(short: str, claim_id: UUID) -> list[LineRow]:
    """The lines of a transcript that stands in its run's row."""
    return (
        [_parsed(line, seq, claim_id) for seq, line in enumerate(short.split("\n"), 1)]
        if short
        else []
    )


def _short(rows: Sequence[LineRow]) -> str | None:
    """Lines as the run's row keeps them: <ISO time> <LEVEL> <text>. None: too long for it."""
    short = "\n".join(
        [
            f"{_iso(row.at)} {_WORDS.get(row.level, row.level)} {row.text}"
            for row in rows
        ]
    )
    return (
        short
        if len(short) <= SHORT and (short.isascii() or len(short.encode()) <= SHORT)
        else None
    )


def _iso(at: datetime) -> str:
    return f"{at.isoformat(timespec='microseconds')[:-6]}Z"  # of a time in UTC


def _parsed(line: str, seq: int, claim_id: UUID) -> LineRow:
    at, _, rest = line.partition(" ")
    word, _, said = rest.partition(" ")
    try:
        moment = datetime.fromisoformat(at)
        level = _LEVELS[word] if word in _LEVELS else int(word)
    except ValueError:  # not of our making: shown as it is
        return LineRow(claim_id, seq, clock.uuid7_time(claim_id), logging.INFO, line)
    return LineRow(claim_id, seq, moment.astimezone(UTC), level, said)
