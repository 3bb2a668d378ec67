"""A master in this process, and a timetable that tests choose."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from scheduler import plan
from scheduler import ticker as ticker_module
from scheduler.election import Election
from scheduler.ticker import Ticker
from tests.scheduler import timetable_for_tests
from tests.scheduler.timetable_for_tests import row
from workqueue import connections, live, node, registry, wakeup
from workqueue.beat import Beat
from workqueue.node import Me
from workqueue.registry import Handler


def _forget() -> None:
    for cached in (registry.rows, registry.load, registry.due, plan._next_after):
        cached.cache_clear()
    live.forget()


@pytest.fixture
def timetable(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Handler, ...]]]:
    """Choose the rows: timetable(row("plain"), ...). To begin with there are none."""
    settings.WORKQUEUE_HANDLERS = "tests.scheduler.timetable_for_tests.TIMETABLE"
    settings.WORKQUEUE_HANDLERS_PACKAGE = "tests.scheduler.runs"
    settings.SERVER_TIME_ZONE = "UTC"

    def choose(*rows: Handler) -> tuple[Handler, ...]:
        monkeypatch.setattr(timetable_for_tests, "TIMETABLE", rows)
        _forget()
        return rows

    choose()
    yield choose
    _forget()


@pytest.fixture
def plain(timetable: Callable[..., tuple[Handler, ...]]) -> Handler:
    """A timetable of one row that ticks every ten seconds for every tenant."""
    return timetable(row("plain"))[0]


@pytest.fixture
def me(transactional_db: None, settings: Any) -> Me:
    """This process, as a server; nothing here has to be quick to be master for long."""
    settings.KEEP_ALIVE = timedelta(seconds=25)
    return node.register(kind="server", report={})


@pytest.fixture
def election(me: Me) -> Election:
    """This process's part in the election; a standby."""
    return Election(me=me)


@pytest.fixture
def master(election: Election) -> Iterator[Election]:
    """This process as the master."""
    assert election.take()
    yield election
    with suppress(Exception):
        election.resign(text="the test is over")


@pytest.fixture
def ticker(
    transactional_db: None,
    timetable: Callable[..., tuple[Handler, ...]],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Ticker]:
    """A scheduler whose threads stand still: tests poll by hand."""
    settings.KEEP_ALIVE = timedelta(seconds=25)
    monkeypatch.setattr(connections, "use_pool", lambda *, kind: None)
    monkeypatch.setattr(connections, "close_all", lambda: None)
    monkeypatch.setattr(Beat, "start", lambda self: None)
    monkeypatch.setattr(wakeup.Listener, "start", lambda self: None)
    monkeypatch.setattr(ticker_module, "CLOSEST", 0.0)
    one = Ticker()
    one.prepare()
    yield one
    one.drain()


@pytest.fixture
def rival(transactional_db: None) -> Election:
    """Another process with the same host name and the same pid."""
    return Election(me=node.register(kind="server", report={}))
