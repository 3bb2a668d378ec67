"""The loop: look, stand, act; one row's trouble stops no other."""

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection

from audit import clock
from audit.models import NodeEvent
from scheduler import ticker as module
from scheduler.election import Election
from scheduler.models import MasterLease, Schedule, Tick
from scheduler.ticker import LOOK, LOOK_DEAF, Ticker
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue import connections, node, wakeup
from workqueue.beat import Beat
from workqueue.models import Node, WorkItem
from workqueue.registry import Handler

type Timetable = Callable[..., tuple[Handler, ...]]


@pytest.fixture
def ticker(
    transactional_db: None,
    timetable: Timetable,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Ticker]:
    """A scheduler whose threads stand still: tests poll by hand."""
    settings.KEEP_ALIVE = timedelta(seconds=25)
    monkeypatch.setattr(connections, "use_pool", lambda *, kind: None)
    monkeypatch.setattr(connections, "close_all", lambda: None)
    monkeypatch.setattr(Beat, "start", lambda self: None)
    monkeypatch.setattr(wakeup.Listener, "start", lambda self: None)
    monkeypatch.setattr(module, "CLOSEST", 0.0)
    one = Ticker()
    one.prepare()
    yield one
    one.drain()


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
    from workqueue import registry

    registry.due.cache_clear()
    ticker.poll()
    assert not Tick.objects.exists()
    ticker._held_back = {"broken": clock.steady()}
    ticker.poll()
    assert Tick.objects.exists()
    assert Schedule.objects.get().problem == ""


def test_a_database_that_is_away_is_the_loops_business_not_the_rows(
    ticker: Ticker, timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    timetable(row("plain"))
    ticker.poll()
    let_a_slot_pass()

    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(module, "tick", away)
    monkeypatch.setattr(connection, "is_usable", lambda: False)
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


def test_the_end_resigns_and_says_so(ticker: Ticker) -> None:
    ticker.poll()
    ticker.stop()
    ticker.drain()
    assert MasterLease.objects.get().holder is None
    assert Node.objects.get().status == "stopped"
    types = list(NodeEvent.objects.order_by("id").values_list("type", flat=True))
    assert types == ["started", "elected", "resigned", "stopped"]


def test_the_end_comes_without_the_database_too(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ticker.poll()

    def away(**_: Any) -> None:
        raise OperationalError("no database")

    with monkeypatch.context() as patched:
        patched.setattr(ticker.election, "resign", away)
        patched.setattr(node, "end", lambda *_, **__: away())
        ticker.drain()
    assert caplog.text.count("ending without the database") == 2


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


def test_silent_processes_are_judged_only_by_one_that_may(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = factories.node(heartbeat_at=clock.now() - timedelta(hours=1))
    factories.item(
        factories.platform(),
        "plain",
        status="executing",
        node_id=worker.id,
        claim_id=clock.uuid7(),
        tenant_slug="platform",
        claimed_at=clock.now(),
        renewed_at=clock.now(),
        trigger="slot",
        attempts=1,
    )
    for _ in range(2):
        ticker._judge()
    assert Node.objects.get(id=worker.id).status == "running"
    monkeypatch.setattr(ticker.beat, "may_judge", lambda: True)
    for _ in range(2):  # a standby judges with every second beat
        ticker._judge()
    assert Node.objects.get(id=worker.id).status == "stopped"
    assert WorkItem.objects.get().status == "pending"


def test_the_report_names_term_and_settings(ticker: Ticker) -> None:
    ticker.poll()
    assert ticker.report() == {
        "term": 1,
        "settings_version": 0,
        "handlers": [],
        "loop": "running",
    }
