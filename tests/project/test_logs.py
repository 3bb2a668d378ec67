"""Log lines: one event each, in UTC, for people or for machines."""

import json
import logging
import os
import socket
import sys
from types import SimpleNamespace
from uuid import UUID

import pytest

from project.logs import Json, Text
from workqueue import run

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


def test_secrets_are_masked_in_the_message_and_in_the_traceback():
    try:
        raise ValueError("postgresql://millrace:hunter22@db/x")
    except ValueError:
        failed = logging.LogRecord(
            "a", 40, __file__, 1, "token=%s", ("abcdef123456",), sys.exc_info()
        )
    for line in (Text().format(failed), Json().format(failed)):
        assert "hunter22" not in line
        assert "abcdef123456" not in line


def test_every_line_names_its_process_as_the_audit_pages_do():
    entry = json.loads(Json().format(record("tick")))
    assert entry["node"] == f"{socket.gethostname()}, {os.getpid()}"
    assert "tenant" not in entry


def test_what_no_encoding_can_write_does_not_stop_the_log():
    Json().format(record("%s", "half \ud800")).encode("ascii")


def test_a_line_from_within_a_run_is_bound_to_tenant_handler_item_and_attempt(
    monkeypatch,
):
    claimed = SimpleNamespace(tenant="acme", handler="a.b", id=7, claim_id=UUID(int=1))
    monkeypatch.setattr(run, "claimed_here", lambda: claimed)
    entry = json.loads(Json().format(record("slow")))
    assert (entry["tenant"], entry["handler"], entry["item"], entry["attempt"]) == (
        "acme",
        "a.b",
        7,
        "00000000-0000-0000-0000-000000000001",
    )
    assert Text().format(record("slow")) == (
        "2025-11-29T17:40:00.500Z WARNING scheduler.tick: slow [tenant=acme handler=a.b"
        " item=7 attempt=00000000-0000-0000-0000-000000000001]"
    )


def test_a_traceback_does_not_break_the_line():
    line = Json().format(record("failed", failed=True))
    assert "\n" not in line
    assert "ValueError: no" in json.loads(line)["traceback"]
