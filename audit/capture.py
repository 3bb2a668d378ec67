"""Route log records to whoever is recording in this thread.

Imports no models: Django configures logging before it loads apps.
"""

import logging
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

type Sink = Callable[[int, str], None]  # (level, formatted text)

_here: ContextVar["captured_by | None"] = ContextVar("captured_by", default=None)


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
        if here := _here.get():
            try:
                text = self.format(record)
            except Exception as problem:
                text = _unformatted(record, problem)
            here.sink(record.levelno, text)


class OutsideAttempts(logging.Filter):
    """For the console: what an attempt logs goes to its transcript, warnings to both."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False: the transcript has it."""
        return record.levelno >= logging.WARNING or _here.get() is None


class captured_by:  # noqa: N801  a context manager; a generator costs three times as much
    """Send every record logged inside the block to `sink`."""

    __slots__ = ("_token", "known", "sink")

    def __init__(self, sink: Sink, known: set[Any] | None = None) -> None:
        """`sink` takes the level and the formatted text; `known`: see `mask.register`."""
        self.sink = sink
        self.known = known

    def __enter__(self) -> None:
        """Begin."""
        self._token: Token[captured_by | None] = _here.set(self)

    def __exit__(self, *_: object) -> None:
        """Whoever recorded before records again."""
        _here.reset(self._token)


def known_here() -> set[Any] | None:
    """The secrets of whoever records in this thread; None: nobody does."""
    return here.known if (here := _here.get()) else None


def _unformatted(record: logging.LogRecord, problem: Exception) -> str:
    """What there is to say of a record whose arguments cannot be written."""
    where = f"{record.pathname}:{record.lineno}"
    message = (
        record.msg if isinstance(record.msg, str) else f"({type(record.msg).__name__})"
    )
    return f"{message} (its arguments could not be written: {type(problem).__name__}; logged at {where})"
