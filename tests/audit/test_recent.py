"""The newest runs of many handlers, in one statement on either database."""

from datetime import timedelta

import pytest
from django.db import connection

from audit import clock, recent, sql
from audit.models import Run
from tests.audit.conftest import recorded

pytestmark = pytest.mark.django_db


def test_each_handler_gets_its_newest_runs_newest_first(django_assert_num_queries):
    now = clock.now()
    for number in range(5):
        recorded(
            handler="a", finished_at=now - timedelta(seconds=number), error=f"{number}"
        )
    recorded(handler="b", finished_at=now - timedelta(days=1), started_at=None)
    with django_assert_num_queries(1):
        found = recent.by_handler(["a", "b", "never"], per=3)
    assert [run.error for run in found["a"]] == ["0", "1", "2"]
    assert [run.ran for run in found["b"]] == [None]
    assert "never" not in found


def test_an_error_of_a_megabyte_is_read_by_its_beginning():
    recorded(handler="a", outcome="failed", error="x" * 60_000)
    assert len(recent.by_handler(["a"])["a"][0].error) == 300


@pytest.mark.postgresql
def test_the_plan_walks_each_handlers_index_and_reads_no_table():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN " + sql.RECENT_POSTGRESQL, {"handlers": ["a"], "per": 3}
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Scan" in plan
    assert "Seq Scan on audit_run" not in plan


@pytest.mark.sqlite
def test_the_plan_on_sqlite_searches_the_index():
    Run.objects.count()
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN QUERY PLAN " + sql.RECENT_SQLITE, {"handlers": "[]", "per": 3}
        )
        plan = "\n".join(row[3] for row in cursor.fetchall())
    assert (
        "USING INDEX run_by_handler" in plan
        or "USING COVERING INDEX run_by_handler" in plan
    )
