"""lines: bytes of a program, as they come, to lines of text. Never holds a long line.

A carriage return within a line starts it anew, as on a terminal: of a progress bar that
is drawn a thousand times one state a second is kept. What a line has beyond LONGEST
is counted and left out. NUL, escape sequences and the like pass: the transcript's gate
and the page know what to do with them.
"""

from collections.abc import Callable

from audit import clock

LONGEST = 262_144  # bytes of a line
REDRAWN_EVERY = (
    1.0  # seconds between two states of a line that is drawn again and again
)


class Lines:
    """One stream. `feed` bytes, then `end`."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        """`on_line` gets each line without its end."""
        self._on_line = on_line
        self._kept = bytearray()
        self._dropped = 0  # bytes of this line
        self._returned = False  # a carriage return that may be half of a line end
        self._drawn_at = 0.0

    def feed(self, chunk: bytes) -> None:
        """Take what came."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._add(piece)
            self._returned = False  # CR LF is a line end
            self._tell()
        self._add(rest)

    def end(self) -> None:
        """There is no more: what has no line end is a line too."""
        if self._kept or self._dropped:
            self._tell()

    def _add(self, piece: bytes) -> None:
        parts = piece.split(b"\r")
        for number, part in enumerate(parts):
            if number:
                self._returned = True
            if part:
                self._redraw()
                self._keep(part)

    def _redraw(self) -> None:
        """Begin the line anew where a carriage return came before."""
        if not self._returned:
            return
        self._returned = False
        if self._kept and clock.steady() - self._drawn_at >= REDRAWN_EVERY:
            self._drawn_at = clock.steady()
            self._tell()
        self._kept.clear()
        self._dropped = 0

    def _keep(self, part: bytes) -> None:
        room = LONGEST - len(self._kept)
        self._kept += part[:room]
        self._dropped += max(0, len(part) - room)

    def _tell(self) -> None:
        line = self._kept.decode("utf-8", "replace")
        if self._dropped:
            line += f" … {self._dropped:,} more bytes of this line left out"
        self._kept.clear()
        self._dropped = 0
        self._on_line(line)
