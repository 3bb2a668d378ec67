"""Route log records to whoever is recording in this thread.

Imports no models: Django configures logging before it loads apps.
"""

import logging
from collections.abc import Callable
from contextvars import ContextVar, Token

type Sink = Callable[[int, str], None]  # (level, formatted text)

_sink: ContextVar[Sink | None] = ContextVar("transcript_sink", default=None)


class TranscriptHandler(logging.Handler):
    """The one handler in settings.LOGGING that feeds transcripts.

    The sink is a context variable, so records of concurrent runs never mix and
    nothing is ever added to, or forgotten on, a logger.
    """

    def handle(self, record: logging.LogRecord) -> bool:
        """As the base class does, without its lock: emit shares nothing, and runs must not line up."""
        passed = self.filter(record)
        if passed:
            self.emit(passed if isinstance(passed, logging.LogRecord) else record)
        return bool(passed)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the formatted record, traceback included, to the sink."""
        if sink := _sink.get():
            try:
                text = self.format(record)
            except Exception as problem:
                text = _unformatted(record, problem)
            sink(record.levelno, text)


class OutsideAttempts(logging.Filter):
    """For the console: what an attempt logs goes to its transcript, warnings to both."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False: the transcript has it."""
        return record.levelno >= logging.WARNING or _sink.get() is None


class captured_by:  # noqa: N801  a context manager; a generator costs three times as much
    """Send every record logged inside the block to `sink`."""

    __slots__ = ("_sink", "_token")

    def __init__(self, sink: Sink) -> None:
        """`sink` takes the level and the formatted text."""
        self._sink = sink

    def __enter__(self) -> None:
        """Begin."""
        self._token: Token[Sink | None] = _sink.set(self._sink)

    def __exit__(self, *_: object) -> None:
        """Whoever recorded before records again."""
        _sink.reset(self._token)


def _unformatted(record: logging.LogRecord, problem: Exception) -> str:
    """What there is to say of a record whose arguments cannot be written."""
    where = f"{record.pathname}:{record.lineno}"
    message = (
        record.msg if isinstance(record.msg, str) else f"({type(record.msg).__name__})"
    )
    return f"{message} (its arguments could not be written: {type(problem).__name__}; logged at {where})"
