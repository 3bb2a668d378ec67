"""Route log records to whoever is recording in this thread.

Imports no models: Django configures logging before it loads apps.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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


@contextmanager
def captured_by(sink: Sink) -> Iterator[None]:
    """Send every record logged inside the block to `sink`."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def _unformatted(record: logging.LogRecord, problem: Exception) -> str:
    """What there is to say of a record whose arguments cannot be written."""
    where = f"{record.pathname}:{record.lineno}"
    message = (
        record.msg if isinstance(record.msg, str) else f"({type(record.msg).__name__})"
    )
    return f"{message} (its arguments could not be written: {type(problem).__name__}; logged at {where})"
