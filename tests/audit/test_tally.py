"""Counters of runs: each run once, whoever asks, and nothing that grows with history."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from audit import clock, tally
from audit.models import Tally
from tests.audit.conftest import plan, recorded

NOW = clock.now()
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def counting_began() -> None:
    """An hour before anything of the test."""
    tally.read(now=NOW - timedelta(minutes=9))


def ended(*, ago: float = 60, waited: float = 2, ran: float = 1, **values: Any) -> None:
    """A run that ended `ago` seconds before NOW."""
    end = NOW - timedelta(seconds=ago)
    began = end - timedelta(seconds=ran)
    times = {
        "enqueued_at": began - timedelta(seconds=waited),
        "claimed_at": began,
        "started_at": began,
        "finished_at": end,
    }
    recorded(**{**times, **values})


def test_runs_are_counted_by_handler_and_outcome():
    ended(handler="a")
    ended(handler="a")
    ended(handler="a", outcome="failed", error="no")
    ended(handler="b")
    found = tally.read(now=NOW)
    assert found["a"].outcomes == {"succeeded": 2, "failed": 1}
    assert found["b"].outcomes == {"succeeded": 1}


def test_a_length_falls_into_the_first_bucket_that_holds_it():
    for ran in (0.0, 0.01, 0.011, 1.0, 3600.0, 3601.0):
        ended(handler="a", ran=ran, waited=0)
    ran = tally.read(now=NOW)["a"].ran
    by_end = dict(zip((*tally.BUCKETS, "more"), ran.runs, strict=True))
    assert {end: n for end, n in by_end.items() if n} == {
        0.01: 2,
        0.05: 1,
        1.0: 1,
        3600.0: 1,
        "more": 1,
    }
    assert ran.seconds == pytest.approx(7202.021)


def test_each_run_is_counted_once_however_often_one_looks():
    ended(handler="a", ago=60)
    tally.read(now=NOW)
    ended(handler="a", ago=5)
    assert tally.read(now=NOW)["a"].outcomes == {"succeeded": 1}, "it is too young"
    later = tally.read(now=NOW + timedelta(seconds=30))
    assert later["a"].outcomes == {"succeeded": 2}
    assert tally.read(now=NOW)["a"].outcomes == {"succeeded": 2}, "never backwards"


def test_what_was_never_claimed_or_began_again_has_no_wait():
    ended(handler="a", claimed_at=None, started_at=None, outcome="cancelled")
    ended(handler="a", attempt=2)
    found = tally.read(now=NOW)["a"]
    assert (sum(found.waited.runs), sum(found.ran.runs)) == (0, 1)


def test_who_looks_after_a_long_time_reads_ten_minutes_of_it():
    ended(handler="a", ago=60)
    found = tally.read(now=NOW + timedelta(hours=1))
    assert "a" not in found


def test_other_buckets_begin_anew():
    ended(handler="a")
    tally.read(now=NOW)
    Tally.objects.update(counts={"buckets": [1.0], "handlers": {"a": {}}})
    assert tally.read(now=NOW + timedelta(seconds=1)) == {}


def test_a_look_costs_three_statements_however_much_there_is():
    for handler in "abc":
        ended(handler=handler)
    with CaptureQueriesContext(connection) as asked:
        tally.read(now=NOW)
    statements = [q["sql"] for q in asked.captured_queries]
    assert sum("SAVEPOINT" not in one for one in statements) == 3


@pytest.mark.postgresql
def test_what_ended_since_the_last_look_is_found_by_an_index():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    with CaptureQueriesContext(
        connection,
    ) as asked:
        tally.read(now=NOW)
    (statement,) = [q["sql"] for q in asked.captured_queries if "audit_run" in q["sql"]]
    told = plan(statement.replace("%", "%%"))
    assert "finished_at" in told.partition("Index Cond")[2]


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_many_who_look_at_once_count_each_run_once():
    for _ in range(20):
        ended(handler="a")
    start = threading.Barrier(6)

    def look() -> None:
        start.wait(10)
        try:
            tally.read(now=NOW)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert tally.read(now=NOW)["a"].outcomes == {"succeeded": 20}
