"""The benchmark: small runs of the same measures, so that its figures can be trusted by hand."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from project.bench import inside, measures, report, server, sql, timetable
from project.bench.handlers import noop, stamp
from tests import databases
from workqueue.models import Tenant

pytestmark = pytest.mark.race


@pytest.fixture
def bench(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[psycopg.Connection[Any]]:
    """The test database, with fifty tenants."""
    monkeypatch.setattr(measures, "TENANTS", 50)
    with psycopg.connect(databases.url(), autocommit=True) as one:
        one.execute(sql.TENANTS, {"count": 50})
        yield one


@pytest.mark.postgresql
def test_the_worker_and_the_plain_client_do_the_same_number_of_items(
    bench: psycopg.Connection[Any],
) -> None:
    assert measures.limit_items(databases.url(), bench) > 0
    count = "SELECT count(*), count(DISTINCT tenant_id) FROM audit_run"
    assert bench.execute(count).fetchone() == (50, 50)
    found = measures.items(databases.url(), bench)
    assert found["per_s"] > 0
    assert found["rss_mb"] > 10
    assert bench.execute(count).fetchone() == (100, 50)


@pytest.mark.postgresql
def test_a_latency_is_measured_for_each_item(
    bench: psycopg.Connection[Any], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workqueue import registry

    settings.WORKQUEUE_HANDLERS = "project.bench.timetable.TIMETABLE"
    registry.rows.cache_clear()
    try:
        found = measures.latency(databases.url(), count=3)
    finally:
        registry.rows.cache_clear()
    assert 0 < found["p50"] <= found["p99"] <= found["max"]


@pytest.mark.postgresql
def test_a_tick_is_measured_beside_the_bare_insert(
    bench: psycopg.Connection[Any], settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from workqueue import registry

    settings.WORKQUEUE_HANDLERS = "project.bench.timetable.TIMETABLE"
    registry.rows.cache_clear()
    try:
        inside.tick()
    finally:
        registry.rows.cache_clear()
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"tick", "limit", "ratio"}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM workqueue_workitem")
        assert cursor.fetchone() == (Tenant.objects.count(),)


@pytest.mark.postgresql
def test_a_database_of_the_benchmark_is_gone_afterwards(transactional_db: None) -> None:
    url = databases.url()
    with (
        server.database(url, "millrace_bench_test") as own,
        psycopg.connect(own) as one,
    ):
        assert one.execute("SELECT count(*) FROM scheduler_masterlease").fetchone() == (
            1,
        )
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(own)


@pytest.mark.once
def test_an_unknown_measure_is_refused_with_those_there_are(
    manage: Callable[..., Any],
) -> None:
    done = manage("bench", "--only", "speed")
    assert done.returncode == 2
    assert "no measure speed; there are items, history" in done.stderr


@pytest.mark.once
def test_figures_are_laid_out_one_a_line() -> None:
    assert report.table({"items_per_s": 1, "cores": 2}).splitlines() == [
        f"{'items_per_s':24} 1",
        f"{'cores':24} 2",
    ]


@pytest.mark.once
def test_the_benchmarks_rows_have_their_handlers_and_never_tick() -> None:
    assert {row.key for row in timetable.TIMETABLE} == {
        noop.__name__.split(".")[-1],
        stamp.__name__.split(".")[-1],
    }
    assert {row.cadence for row in timetable.TIMETABLE} == {None}
