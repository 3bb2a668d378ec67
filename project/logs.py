"""logs: one event per line, as text or JSON, times in UTC, and what runs bound to each line.

Only lines for the console are formatted here, never those of a transcript: what is
bound is looked up when such a line is written, so a run pays nothing for it. Secrets
are masked as in everything that is stored.
"""

import os
import socket
import threading
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from structlog.processors import JSONRenderer, format_exc_info
from structlog.stdlib import ExtraAdder, ProcessorFormatter

from audit.mask import masked

# What a line may carry besides its message: the fields of gunicorn's access log.
REQUEST = ("method", "path", "status", "ms", "bytes", "client")

type Entry = MutableMapping[str, Any]


class Json(ProcessorFormatter):
    """For machines: one object per line, a traceback inside it."""

    def __init__(self) -> None:
        """Takes no arguments."""
        super().__init__(
            processors=[
                _describe,
                ExtraAdder(allow=REQUEST),
                format_exc_info,
                _mask,
                ProcessorFormatter.remove_processors_meta,
                # ASCII only: a broken surrogate would stop the line, and machines read both.
                JSONRenderer(default=str),
            ]
        )


class Text(ProcessorFormatter):
    """For people: time, level, logger, message; a traceback follows on lines of its own."""

    def __init__(self) -> None:
        """Takes no arguments."""
        super().__init__(processors=[_describe, format_exc_info, _mask, _as_text])


def running() -> dict[str, object]:
    """What the calling thread runs: tenant, handler, item and attempt; {} where nothing."""
    if not apps.models_ready:  # lines of the start
        return {}
    from workqueue import run  # not before Django has its models

    claimed = run.claimed_here()
    if claimed is None:
        return {}
    return {
        "tenant": claimed.tenant,
        "handler": claimed.handler,
        "item": claimed.id,
        "attempt": str(claimed.claim_id),
    }


def _describe(_: object, __: str, event: Entry) -> Entry:
    """The record's own words, what runs, and who says it."""
    record = event["_record"]
    moment = datetime.fromtimestamp(record.created, UTC)
    event["at"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event["level"] = record.levelname.lower()
    event["logger"] = record.name
    event["message"] = event.pop("event")
    event.update(running())
    event["node"] = (
        f"{socket.gethostname()}, {os.getpid()}"  # as the audit pages say it
    )
    event["thread"] = threading.current_thread().name  # workers leave it off the record
    return event


def _mask(_: object, __: str, event: Entry) -> Entry:
    event["message"] = masked(event["message"])
    if traceback := event.pop("exception", None):
        event["traceback"] = masked(traceback)
    return event


def _as_text(_: object, __: str, event: Mapping[str, Any]) -> str:
    bound = " ".join(f"{name}={value}" for name, value in running().items())
    told = "{at} {level:<7} {logger}: {message}".format_map(
        {**event, "level": event["level"].upper()}
    )
    parts = [f"{told} [{bound}]" if bound else told, event.get("traceback")]
    return "\n".join(filter(None, parts))
