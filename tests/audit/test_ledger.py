import json
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection, models, transaction

from audit import clock, ledger, mask, sql, text
from audit.ledger import LateRecord, RunRecord
from audit.models import Change, Event, LateResult, NodeEvent, Run
from tests.audit.conftest import run_record

pytestmark = pytest.mark.django_db

MOMENT = datetime(2026, 3, 14, 15, 9, 26, 535897, tzinfo=UTC)


def everything(number: int) -> RunRecord:
    """A record in which no column has its default."""
    return run_record(
        kind="job",
        item_id=number,
        tenant_id=number,
        tenant=f"tenant-{number}",
        handler=f"tests.handler_{number}",
        dedup_key=f"key {number}",
        tick_id=number,
        trigger="start",
        slot=MOMENT + timedelta(seconds=number),
        enqueued_at=MOMENT + timedelta(seconds=number + 1),
        claimed_at=MOMENT + timedelta(seconds=number + 2),
        started_at=MOMENT + timedelta(seconds=number + 3),
        finished_at=MOMENT + timedelta(seconds=number + 4),
        node_id=UUID(int=number),
        node=f"host, {number}",
        attempt=number,
        recoveries=number,
        outcome="partial",
        seen=number,
        changed=number,
        skipped=number,
        failed=number,
        summary=f"summary {number}",
        error=f"error {number}",
        details={"n": number, "ü": [None, "ü"]},
        transcript=f"2026-03-14T15:09:26.535897Z INFO line {number}\nand {number}",
        line_count=number,
        dropped_lines=number,
    )


def stored(record: RunRecord) -> RunRecord:
    row = Run.objects.get(id=record.id)
    return RunRecord(**{name: getattr(row, name) for name in RunRecord._fields})


def test_a_record_has_the_columns_of_a_run_and_the_statement_writes_them_all():
    columns = {field.attname for field in Run._meta.concrete_fields}
    assert set(RunRecord._fields) == columns - {"finish_id"}
    assert set(sql.RUN_TYPES) == columns


def test_the_widths_of_keys_are_those_of_the_columns():
    assert {
        name: Run._meta.get_field(name).max_length for name in ledger._NAMES
    } == ledger._NAMES


@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_column_comes_back_as_it_was_given(count: int):
    records = [everything(number + 1) for number in range(count)]
    finish_id = uuid4()
    ledger.record(records, finish_id=finish_id)
    assert [stored(record) for record in records] == records
    assert set(Run.objects.values_list("finish_id", flat=True)) == {finish_id}


def test_defaults_come_back_too():
    record = RunRecord(
        id=clock.uuid7(),
        tenant_id=1,
        tenant="acme",
        handler="tests.noop",
        trigger="call",
        enqueued_at=MOMENT,
        finished_at=MOMENT,
        outcome="cancelled",
    )
    ledger.record([record], finish_id=uuid4())
    assert stored(record) == record


@pytest.mark.parametrize("column", [*sql.RUN_TYPES])
def test_a_column_may_be_equal_in_all_rows_or_differ(column: str):
    """Equal columns travel as one value, others as arrays: each must do both ways."""
    if column in ("id", "finish_id"):
        return
    one, two = everything(1), everything(2)
    mixed = one._replace(id=two.id, **{column: getattr(two, column)})
    ledger.record([one, mixed], finish_id=uuid4())
    assert [stored(one), stored(mixed)] == [one, mixed]


def test_nulls_and_values_may_stand_in_one_column():
    nullable = ("item_id", "tick_id", "slot", "claimed_at", "started_at", "node_id", "details")  # fmt: skip
    records = [
        everything(n)._replace(**dict.fromkeys(nullable)) if n % 2 else everything(n)
        for n in range(1, 7)
    ]
    ledger.record(records, finish_id=uuid4())
    assert [stored(record) for record in records] == records


def test_no_runs_are_no_statement(django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        ledger.record([], finish_id=uuid4())


@pytest.mark.django_db(transaction=True)
def test_runs_are_part_of_the_callers_transaction():
    with transaction.atomic():
        ledger.record([run_record()], finish_id=uuid4())
        assert Run.objects.count() == 1
        transaction.set_rollback(True)
    assert Run.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_claim_has_one_run():
    record = run_record()
    ledger.record([record], finish_id=uuid4())
    with pytest.raises(DatabaseError), transaction.atomic():
        ledger.record([record], finish_id=uuid4())
    assert Run.objects.count() == 1


@pytest.mark.parametrize("count", [1, 3])
def test_text_that_no_database_takes_is_stored_visibly(count: int):
    records = [
        run_record(
            error=f"ValueError: {n} a\0b\udcd1",
            summary="\0",
            details={"\0": float("nan")},
            dedup_key=f"\0{n}",
            node="\udcd1",
            tenant="x" * 80,
        )
        for n in range(count)
    ]
    ledger.record(records, finish_id=uuid4())
    row = Run.objects.order_by("error").first()
    assert row is not None
    assert row.error == "ValueError: 0 a␀b\\udcd1"
    assert (row.summary, row.dedup_key, row.node) == ("␀", "␀0", "\\udcd1")
    assert row.details == {"␀": "nan"}
    assert row.tenant == "x" * 63 + "…"


@pytest.mark.parametrize("length", [1_025, 65_537, 5_000_000])
def test_endless_errors_are_stored_cut(length: int):
    ledger.record([run_record(error="x" * length)], finish_id=uuid4())
    error = Run.objects.get().error
    assert len(error) == min(length, len(error)) <= text.LIMIT
    assert (error == "x" * length) == (length <= text.LIMIT)


def test_counters_beyond_their_column_are_stored_as_the_most_it_holds():
    ledger.record([run_record(seen=2**40, changed=-(2**70))], finish_id=uuid4())
    row = Run.objects.get()
    assert (row.seen, row.changed) == (2**31 - 1, -(2**31 - 1))


def test_no_secret_is_stored_in_any_row(no_secrets: None):
    text.register_secret("correct-horse-battery")
    said = "correct-horse-battery; password=hunter22"
    data = {"token": "hunter22", "inner": [{"x": "correct-horse-battery"}]}
    ledger.record([run_record(error=said, summary=said, details=data)], finish_id=uuid4())  # fmt: skip
    late = {"tenant_id": 1, "tenant": "acme", "handler": "tests.noop"}
    ledger.record_late(LateRecord(claim_id=uuid4(), finished_at=MOMENT, outcome="failed", error=said, summary=said, transcript=said, **late))  # fmt: skip
    ledger.event(type="a.b", tenant_id=1, tenant="acme", subject=said, data=data)
    ledger.node_event(node_id=uuid4(), node="host, 1", kind="web", type="note", text=said)  # fmt: skip
    ledger.change(who="ada", origin="admin", subject=said, verb="changed", old=data, new=said, why=said)  # fmt: skip
    for model in (Run, LateResult, Event, NodeEvent, Change):
        rows = list(model.objects.values())
        row = json.dumps(rows, default=str, ensure_ascii=False)
        assert mask.MASK in row
        assert "correct-horse" not in row
        assert "hunter22" not in row


@pytest.mark.once
@pytest.mark.parametrize(
    "statement", [sql.insert_runs, lambda columns: sql.insert_closed(columns, "close")]
)
def test_statements_of_batches_of_every_kind_are_not_kept_for_good(
    statement: Callable[[tuple[str, ...]], str],
):
    kinds = [kind for n in range(1, 4) for kind in combinations(sql.RUN_TYPES, n)]
    tracemalloc.start()
    try:
        for kind in kinds:
            statement(kind)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kinds) > 4_000
    assert grown < 2 * 2**20


def test_names_are_never_masked(no_secrets: None):
    text.register_secret("tenant-blue")
    record = run_record(tenant="tenant-blue", dedup_key="token: tenant-blue")
    ledger.record([record], finish_id=uuid4())
    assert stored(record) == record


def test_a_late_result_is_kept_with_its_time_of_arrival():
    claim = clock.uuid7()
    ledger.record_late(
        LateRecord(
            claim_id=claim,
            tenant_id=1,
            tenant="acme",
            handler="tests.noop",
            finished_at=MOMENT,
            outcome="succeeded",
            seen=3,
            error="a\0b",
        )
    )
    row = LateResult.objects.get()
    assert (row.claim_id, row.seen, row.error) == (claim, 3, "a␀b")
    assert abs(row.arrived_at - clock.now()) < timedelta(minutes=1)


@pytest.mark.django_db(transaction=True)
def test_an_event_commits_with_the_change_that_it_tells_of():
    with transaction.atomic():
        ledger.event(type="status.changed", tenant_id=1, tenant="acme", subject="component:42", data={"to": "down"}, severity=3)  # fmt: skip
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    ledger.event(type="status.changed", tenant_id=1, tenant="acme", subject="component:42", data={"to": "down"}, severity=3)  # fmt: skip
    event = Event.objects.get()
    assert (event.type, event.tenant, event.subject) == (
        "status.changed",
        "acme",
        "component:42",
    )
    assert (event.data, event.severity) == ({"to": "down"}, 3)


def test_changes_and_node_events_say_who_when_old_new():
    with clock.at(MOMENT):
        ledger.change(who="ada", origin="command", subject="setting:x", verb="changed", old={"a": 1}, new={"a": 2}, why="more", tenant_id=7)  # fmt: skip
        ledger.node_event(node_id=UUID(int=1), node="host, 1", kind="server", type="elected", term=5)  # fmt: skip
    change, event = Change.objects.get(), NodeEvent.objects.get()
    assert (change.who, change.at, change.old, change.new, change.why) == (
        "ada",
        MOMENT,
        {"a": 1},
        {"a": 2},
        "more",
    )
    assert (event.type, event.term, event.at) == ("elected", 5, MOMENT)


def test_nothing_in_the_ledger_is_ever_updated():
    """Its tables have no verb but `ledger`'s, and no relation that a cascade could follow."""
    for model in (Run, LateResult, Event, NodeEvent, Change):
        assert not [f for f in model._meta.get_fields() if f.is_relation]
        assert type(model._default_manager) is models.Manager


# --- the hot path


def test_a_record_is_cheap_to_make():
    values = run_record()._asdict()
    begun = time.thread_time()
    for _ in range(10_000):
        RunRecord(**values)
    assert (time.thread_time() - begun) / 10_000 < 25e-6  # 2 on a free machine


@pytest.mark.postgresql
def test_a_batch_is_one_prepared_statement_with_arrays_for_what_differs(settings: Any):
    now, node = clock.now(), uuid4()
    records = [
        run_record(
            tenant_id=n,
            tenant=f"t-{n}",
            node_id=node,
            finished_at=now + timedelta(microseconds=n),
        )
        for n in range(1, 101)
    ]
    ledger.record(
        records, finish_id=uuid4()
    )  # opens the connection, looks for the month
    before = _prepared()
    for _ in range(3):
        again = [record._replace(id=clock.uuid7()) for record in records]
        ledger.record(again, finish_id=uuid4())
    new = _prepared() - before
    assert len(new) <= 1
    statement = next(iter(new or before))
    assert "unnest" in statement
    assert statement.count("[]") < 12
    assert Run.objects.count() == 400


@pytest.mark.postgresql
def test_behind_a_transaction_pooler_nothing_is_prepared(settings: Any):
    settings.DATABASE_LISTEN = False
    before = _prepared()
    for _ in range(8):
        ledger.record([run_record(), run_record(handler="other")], finish_id=uuid4())
    assert _prepared() == before


def _prepared() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return {row[0] for row in cursor.fetchall() if "audit_run" in row[0]}
