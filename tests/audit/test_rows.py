from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from audit import words
from audit.models import Change, LateResult, NodeEvent, Run
from audit.rows import ChangeRow, LateRow, NodeEventRow, RunRow

pytestmark = pytest.mark.once

MOMENT = datetime(2026, 3, 14, tzinfo=UTC)


def test_a_row_has_the_columns_of_its_table():
    columns = {
        model: {field.attname for field in model._meta.concrete_fields}
        for model in (Run, LateResult, NodeEvent, Change)
    }
    assert set(RunRow.__slots__) == columns[Run]
    assert set(LateRow.__slots__) == columns[LateResult] - {"id"}
    assert set(NodeEventRow.__slots__) == columns[NodeEvent]
    assert set(ChangeRow.__slots__) == columns[Change]


def event(**values: object) -> NodeEventRow:
    known = {"id": 7, "at": MOMENT, "node_id": UUID(int=1), "node": "host, 1", "kind": "server", "type": "elected", "term": 5, "text": ""}  # fmt: skip
    return NodeEventRow(**{**known, **values})  # type: ignore[arg-type]


def test_a_node_event_has_a_word_for_operators():
    assert event().word == "Became master"
    assert event(type="of a later release").word == "of a later release"


def test_a_change_writes_out_its_values():
    change = ChangeRow(
        id=1,
        at=MOMENT,
        who="ada",
        origin="admin",
        subject="setting:x",
        tenant_id=None,
        verb="changed",
        old=None,
        new={"WORKER_CONCURRENCY": 12, "rows": [1, 2]},
        why="",
    )
    assert change.old_words == words.UNKNOWN
    assert change.new_words == "WORKER_CONCURRENCY 12, rows [1, 2]"


def test_it_never_ran_for_less_than_no_time():
    base = dict.fromkeys(RunRow.__slots__)
    run = RunRow(
        **{  # type: ignore[arg-type]
            **base,
            "started_at": MOMENT + timedelta(seconds=5),
            "finished_at": MOMENT + timedelta(seconds=4),
        }
    )
    assert run.ran == timedelta()
