"""Every question of the ledger walks an index, whatever the statistics say."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import clock, ledger, partitions, queries
from audit.rows import RunFilter
from tests.audit.conftest import plan, recorded, run_record

pytestmark = pytest.mark.django_db

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ALL = None
PAST = datetime(clock.now().year - 2, 5, 1, tzinfo=UTC)


# --- plans


@pytest.fixture(params=[False, True], ids=["unanalyzed", "analyzed"])
def many(request: pytest.FixtureRequest) -> None:
    """5,000 runs, with and without statistics, and a month of two years ago."""
    for table in partitions.PARENTS:
        partitions.make_room(table, [PAST])
    with connection.cursor() as cursor:
        # Other tests' rows are gone, but what an ANALYZE thought of them is not: "18
        # pages without a row", for ever. A table that is truncated starts anew, as a
        # month does that nobody has written to.
        cursor.execute("TRUNCATE audit_run")
    now = clock.now()
    records = [
        run_record(
            tenant_id=n % 500,
            handler=f"tests.h{n % 20}",
            finished_at=now - timedelta(seconds=n),
            outcome="failed" if n % 50 == 0 else "succeeded",
        )
        for n in range(5_000)
    ]
    ledger.record(records, finish_id=uuid4())
    if request.param:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


QUESTIONS: dict[str, tuple[set[str], Callable[[UUID], object]]] = {
    "run": ({"pkey"}, lambda id: queries.run(id)),
    "finish ids": ({"pkey"}, lambda id: queries.finish_ids([id])),
    "newest": (
        {"finished_at_id_idx"},
        lambda _: queries.runs(RunFilter(), tenants=ALL),
    ),
    "a tenant's": (
        {"tenant_id_finished_at_idx"},
        lambda _: queries.runs(RunFilter(), tenants=frozenset({3})),
    ),
    "a handler's": (
        {"handler_finished_at_idx"},
        lambda _: queries.runs(RunFilter(handlers=("tests.h3",)), tenants=ALL),
    ),
    "attempts": ({"item_id_idx"}, lambda _: queries.attempts(17)),
    "attempts around": ({"item_id_idx"}, lambda _: queries.attempts(17, around=9)),
    # Without statistics the planner takes any outcome for rare, and every way for equal.
    "an outcome's": (
        {"outcome_finished_at_idx", "finished_at_id_idx"},
        lambda _: queries.runs(RunFilter(outcomes=("abandoned",)), tenants=ALL),
    ),
    # Never by the item: that index holds the bad runs of all time, too.
    "failures": (
        {"outcome_finished_at_idx"},
        lambda _: queries.failures_since(clock.now() - HOUR, now=clock.now()),
    ),
}


@pytest.mark.postgresql
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_walks_its_index(many: None, question: str):
    indexes, ask = QUESTIONS[question]
    with CaptureQueriesContext(connection) as asked:
        ask(clock.uuid7())
    month = f"audit_run_{clock.now():%Y_%m}"
    plans = [
        plan(query["sql"])
        for query in asked.captured_queries
        if "audit_run" in query["sql"]
    ]
    of_month = [
        line
        for said in plans
        for line in said.splitlines()
        if f" on {month} " in line or f" on {month}_" in line
    ]
    assert of_month, plans
    for line in of_month:
        assert "Seq Scan" not in line
        assert any(f"{month}_{index}" in line for index in indexes) or (
            "Bitmap Heap" in line
        ), line


@pytest.mark.postgresql
def test_a_question_about_one_run_opens_no_month_before_it(many: None):
    with CaptureQueriesContext(connection) as asked:
        queries.run(clock.uuid7())
        queries.lines(clock.uuid7(), after=0, limit=10)
    for query in asked.captured_queries:
        said = plan(query["sql"])
        assert f"{PAST:%Y_%m}" not in said
        assert f"{clock.now():%Y_%m}" in said


def test_no_question_about_one_run_takes_more_than_two_statements(
    django_assert_num_queries: Any,
):
    record = recorded()
    with django_assert_num_queries(1):
        queries.run(record.id)
    with django_assert_num_queries(2):
        queries.lines(record.id, after=0, limit=10)
    with django_assert_num_queries(1):
        queries.attempts(1)
