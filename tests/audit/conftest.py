"""What the tests of the ledger share: records, and a memory of secrets of their own."""

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from audit import clock, ledger, mask
from audit.ledger import RunRecord
from audit.transcript import Transcript

type Make = Callable[..., RunRecord]

_numbers = itertools.count(1)


@pytest.fixture
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is registered yet; what the test registers is forgotten after it."""
    forget_secrets(monkeypatch)


def forget_secrets(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone, what was registered before is unknown."""
    for name in ("_secrets", "_recent", "_gone", "_forms", "_grams", "_short"):
        patch.setattr(mask, name, type(getattr(mask, name))())
    for name in ("_size", "_long"):
        patch.setattr(mask, name, 0)


def run_record(**values: Any) -> RunRecord:
    """An attempt that has just succeeded."""
    now = values.get("finished_at") or clock.now()
    defaults: dict[str, Any] = {
        "id": clock.uuid7(now - timedelta(seconds=1)),
        "item_id": next(_numbers),
        "tenant_id": 1,
        "tenant": "acme",
        "handler": "tests.noop",
        "trigger": "slot",
        "enqueued_at": now - timedelta(seconds=3),
        "claimed_at": now - timedelta(seconds=1),
        "started_at": now - timedelta(seconds=1),
        "finished_at": now,
        "outcome": "succeeded",
        "attempt": 1,
    }
    return RunRecord(**{**defaults, **values})


def recorded(**values: Any) -> RunRecord:
    """Such an attempt, in the ledger."""
    record = run_record(**values)
    ledger.record([record], finish_id=uuid4())
    return record


def plan(statement: str, params: Any = None) -> str:
    """How PostgreSQL would do it."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}", params)
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.fixture
def one() -> Transcript:
    """A transcript of nobody's attempt."""
    return Transcript(claim_id=clock.uuid7())
