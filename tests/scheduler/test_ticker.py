"""The loop: look, stand, act; one row's trouble stops no other."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection
from django.db.models import CharField, Value

from audit import clock
from scheduler import ticker as module
from scheduler.election import Election
from scheduler.models import MasterLease, Schedule, Tick
from scheduler.override import run_now
from scheduler.ticker import LOOK, LOOK_DEAF, Ticker
from tests import databases, factories
from tests.scheduler.timetable_for_tests import row
from workqueue import node, registry
from workqueue.models import WorkItem
from workqueue.registry import Handler

type Timetable = Callable[..., tuple[Handler, ...]]


@pytest.fixture
def other(transactional_db: None) -> Election:
    return Election(me=node.register(kind="server", report={}))


def let_a_slot_pass(key: str = "plain") -> None:
    """As if the row had been ticked two slots ago."""
    back = clock.now() - timedelta(seconds=25)
    Schedule.objects.filter(key=key).update(since=back, last_slot=None)


def test_where_nobody_is_master_it_takes_the_lease_and_ticks(
    ticker: Ticker, timetable: Timetable
) -> None:
    timetable(row("plain"))
    ticker.poll()
    assert ticker.election.term == 1
    let_a_slot_pass()
    ticker.poll()
    assert Tick.objects.get().term == 1
    assert WorkItem.objects.get().handler == "plain"


def test_a_standby_looks_and_writes_nothing(
    ticker: Ticker,
    timetable: Timetable,
    other: Election,
    django_assert_num_queries: Callable[..., Any],
) -> None:
    timetable(row("plain"))
    assert other.take()
    with django_assert_num_queries(1):
        delay = ticker.poll()
    assert delay == LOOK_DEAF
    assert ticker.election.term is None
    assert not Schedule.objects.exists()


def test_an_idle_master_asks_one_question_a_pass(
    ticker: Ticker, timetable: Timetable, django_assert_num_queries: Callable[..., Any]
) -> None:
    timetable(row("plain", cadence="12h"))
    ticker.poll()
    with django_assert_num_queries(1):
        ticker.poll()


def test_it_looks_every_two_seconds_where_it_can_be_woken(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    timetable(row("plain", cadence="12h"))
    assert ticker.poll() == LOOK_DEAF
    monkeypatch.setattr(ticker.listener, "healthy", lambda: True)
    assert ticker.poll() == LOOK


def test_it_sleeps_no_longer_than_to_the_next_slot(
    ticker: Ticker, timetable: Timetable
) -> None:
    timetable(row("plain", cadence="1s"), row("probed", cadence="1s"))
    assert 0 < ticker.poll() < 1


def test_a_process_whose_beat_is_old_does_not_stand(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticker.beat, "fresh", lambda: False)
    ticker.poll()
    assert ticker.election.term is None


def test_one_row_that_fails_is_flagged_and_the_others_tick(
    ticker: Ticker, timetable: Timetable, caplog: pytest.LogCaptureFixture
) -> None:
    timetable(row("broken", cadence="5s"), row("plain"))
    ticker.poll()
    let_a_slot_pass("broken")
    let_a_slot_pass("plain")
    caplog.set_level(logging.ERROR, "scheduler.ticker")
    ticker.poll()
    assert list(Tick.objects.values_list("handler", flat=True)) == ["plain"]
    problem = Schedule.objects.get(key="broken").problem
    assert "RuntimeError: the probe␀ is broken" in problem
    for _ in range(3):
        ticker.poll()
    assert (
        caplog.text.count("tick failed handler=broken") == 1
    )  # again in a minute, not at every pass


def test_a_row_that_failed_is_tried_again_after_a_minute(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    timetable(row("broken", cadence="5s"))
    ticker.poll()
    let_a_slot_pass("broken")
    ticker.poll()
    monkeypatch.setattr(
        "tests.scheduler.runs.broken.due",
        lambda now: factories.Tenant.objects.values_list("id"),
    )
    registry.due.cache_clear()
    ticker.poll()
    assert not Tick.objects.exists()
    ticker._held_back = {"broken": clock.steady()}
    ticker.poll()
    assert Tick.objects.exists()
    assert Schedule.objects.get().problem == ""


@pytest.mark.parametrize("asked", [False, True], ids=["slot", "run now"])
def test_a_row_whose_pairs_have_no_key_is_flagged_and_its_tick_is_still_to_come(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    timetable(row("paired", scope="tests.scheduler.runs.paired.pairs"))
    ticker.poll()
    monkeypatch.setattr(
        "tests.scheduler.runs.paired.pairs",
        lambda now: factories.Tenant.objects.values_list(
            "id", Value(None, output_field=CharField())
        ),
    )
    if asked:
        run_now("paired", who="ann", origin="command", why="")
    else:
        let_a_slot_pass("paired")
    ticker.poll()
    schedule = Schedule.objects.get()
    assert schedule.problem.startswith("its last tick failed: IntegrityError: ")
    assert schedule.last_slot is None
    assert (schedule.run_requested_at is not None) == asked
    assert not Tick.objects.exists()


def test_a_probe_whose_statement_the_database_cannot_read_is_its_own_rows_trouble(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has the class of a lost connection for it."""
    timetable(row("broken", cadence="5s"), row("plain"))
    ticker.poll()
    let_a_slot_pass("broken")
    let_a_slot_pass("plain")
    registry.due.cache_clear()
    monkeypatch.setattr(
        "tests.scheduler.runs.broken.due",
        lambda now: connection.cursor().execute("SELECT 1 FROM nowhere"),
    )
    ticker.poll()
    assert list(Tick.objects.values_list("handler", flat=True)) == ["plain"]
    assert "nowhere" in Schedule.objects.get(key="broken").problem


def test_a_run_now_does_not_mend_a_cadence_that_cannot_be_read(
    ticker: Ticker, timetable: Timetable
) -> None:
    timetable(row("plain"))
    ticker.poll()
    Schedule.objects.update(cadence="0 0 30 2 *")
    ticker.poll()
    problem = Schedule.objects.get().problem
    assert "no such day-of-month" in problem
    run_now("plain", who="ann", origin="command", why="")
    ticker.poll()
    assert Tick.objects.get().trigger == "operator"
    ticker.poll()
    assert Schedule.objects.get().problem == problem


def test_a_database_that_is_away_is_the_loops_business_not_the_rows(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    timetable(row("plain"))
    ticker.poll()
    let_a_slot_pass()

    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(module, "tick", away)
    with pytest.raises(OperationalError):
        ticker.poll()
    assert Schedule.objects.get().problem == ""


def test_a_term_that_ends_in_the_middle_of_a_pass_ends_the_pass(
    ticker: Ticker, timetable: Timetable, other: Election
) -> None:
    timetable(row("plain"), row("started", cadence="10s"))
    ticker.poll()
    let_a_slot_pass("plain")
    let_a_slot_pass("started")
    original = module.tick

    def lose_it_after_one(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        MasterLease.objects.update(expires_at=clock.earlier(timedelta(seconds=1)))
        assert other.take()
        return result

    module.tick = lose_it_after_one
    try:
        ticker.poll()
    finally:
        module.tick = original
    assert list(Tick.objects.values_list("handler", "term")) == [("plain", 1)]
    assert ticker.election.term is None


def test_bootstrap_and_daily_acts_happen_once_per_term(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(
        module, "bootstrap", lambda *_, **__: done.append("bootstrap") or True
    )
    monkeypatch.setattr(module, "daily", lambda _: done.append("daily"))
    for _ in range(3):
        ticker.poll()
    assert done == ["bootstrap", "daily"]
    ticker.election.resign(text="again")
    ticker.poll()
    assert done == ["bootstrap", "daily"] * 2


def test_a_bootstrap_that_failed_is_tried_again_in_a_minute_and_ticks_go_on(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    timetable(row("plain"))
    done: list[str] = []
    monkeypatch.setattr(
        module, "bootstrap", lambda *_, **__: bool(done.append("bootstrap"))
    )
    ticker.poll()
    let_a_slot_pass()
    ticker.poll()
    assert done == ["bootstrap"]
    assert Tick.objects.exists()
    ticker._bootstrap_at = clock.steady()
    ticker.poll()
    assert done == ["bootstrap"] * 2


@pytest.mark.postgresql
def test_a_row_that_loses_the_connection_lets_the_others_go_first(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that dawdles: the server ends the idle transaction, at every pass again."""
    timetable(row("broken", cadence="5s"), row("plain"))
    ticker.poll()
    let_a_slot_pass("broken")
    let_a_slot_pass("plain")

    def dawdle(now: Any) -> None:
        backend = connection.connection.info.backend_pid
        with psycopg.connect(databases.url(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
        connection.cursor().execute("SELECT 1")

    registry.due.cache_clear()
    monkeypatch.setattr("tests.scheduler.runs.broken.due", dawdle)
    with pytest.raises(DatabaseError):
        ticker.poll()
    connection.close()
    ticker.poll()
    assert list(Tick.objects.values_list("handler", flat=True)) == ["plain"]
