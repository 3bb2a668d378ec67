"""Log lines: one event each, in UTC, for people or for machines."""

import json
import logging
import sys

import pytest

from project.logs import Json, Text

pytestmark = pytest.mark.once


def record(message: str, *arguments: object, failed: bool = False) -> logging.LogRecord:
    info = None
    if failed:
        try:
            raise ValueError("no")
        except ValueError:
            info = sys.exc_info()
    made = logging.LogRecord(
        "scheduler.tick", logging.WARNING, __file__, 1, message, arguments, info
    )
    made.created = 1_764_438_000.5
    return made


def test_a_line_for_people():
    assert Text().format(record("tick handler=%s", "a.b")) == (
        "2025-11-29T17:40:00.500Z WARNING scheduler.tick: tick handler=a.b"
    )


def test_an_object_for_machines():
    entry = json.loads(Json().format(record("tick %s", "ø\n")))
    assert entry["at"] == "2025-11-29T17:40:00.500Z"
    assert (entry["level"], entry["logger"], entry["message"]) == (
        "warning",
        "scheduler.tick",
        "tick ø\n",
    )


def test_a_traceback_does_not_break_the_line():
    line = Json().format(record("failed", failed=True))
    assert "\n" not in line
    assert "ValueError: no" in json.loads(line)["traceback"]
