"""logs: one event per line, as text or JSON, times in UTC."""

import json
import logging
from datetime import UTC, datetime


def _moment(record: logging.LogRecord) -> str:
    """2026-11-29T17:40:00.123Z."""
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Text(logging.Formatter):
    """For people: time, level, logger, message; a traceback follows on lines of its own."""

    def __init__(self) -> None:
        """Takes no arguments."""
        super().__init__("{asctime} {levelname:<7} {name}: {message}", style="{")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """The time in UTC."""
        return _moment(record)


class Json(logging.Formatter):
    """For machines: one object per line, a traceback inside it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON. What cannot be said in JSON is written as text."""
        entry: dict[str, object] = {
            "at": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
            "thread": record.threadName,
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)
