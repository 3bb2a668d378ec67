"""Wake-ups: within milliseconds of the commit, never before it, and back after any loss."""

import os
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from tests import factories
from tests.waiting import wait_until
from workqueue import wakeup
from workqueue.wakeup import Listener, Notifier

pytestmark = pytest.mark.django_db(transaction=True)


class Woken:
    """Counts, and lets a test wait."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._event = threading.Event()

    def __call__(self) -> None:
        self.times.append(time.monotonic())
        self._event.set()

    def wait(self, within: float = 10) -> bool:
        return self._event.wait(within)

    def clear(self) -> None:
        self._event.clear()


@pytest.fixture(autouse=True)
def notifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notifier]:
    """A notifier of the test's own; the thread of one that was used stays, and sleeps."""
    fresh = Notifier()
    monkeypatch.setattr(wakeup, "_notifier", fresh)
    yield fresh
    fresh.flush(5)
    fresh._drop()


@pytest.fixture
def listening() -> Iterator[Callable[..., tuple[Listener, Woken]]]:
    started: list[Listener] = []

    def start(**options: Any) -> tuple[Listener, Woken]:
        woken = Woken()
        started.append(Listener(woken, **options))
        started[-1].start()
        wait_until(started[-1].healthy, within=10, what="the listener is ready")
        woken.wait()
        woken.clear()
        return started[-1], woken

    yield start
    for one in started:
        one.stop()


def listeners() -> list[int]:
    """The pids of server processes that serve listeners."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE 'millrace%listener'"
        )
        return [pid for (pid,) in cursor.fetchall()]


@pytest.mark.postgresql
@pytest.mark.race
def test_from_commit_to_wake_is_a_matter_of_milliseconds(
    listening: Callable[..., tuple[Listener, Woken]], capsys: pytest.CaptureFixture[str]
) -> None:
    _, woken = listening()
    took = []
    for _ in range(50):
        woken.clear()
        with transaction.atomic():
            factories.tenant()
            wakeup.on_commit_notify()
        committed = time.monotonic()
        assert woken.wait()
        took.append((woken.times[-1] - committed) * 1000)
    with capsys.disabled():
        print(
            f"\ncommit to wake: p50 {statistics.median(took):.1f} ms, max {max(took):.1f} ms"
        )
    assert statistics.median(took) < 50  # a few on a machine that does nothing else


@pytest.mark.postgresql
def test_nothing_is_sent_before_the_commit_nor_after_a_rollback(
    notifier: Notifier,
) -> None:
    sent: list[int] = []
    notifier._send = lambda: sent.append(1)  # type: ignore[method-assign]
    with transaction.atomic():
        wakeup.on_commit_notify()
        transaction.set_rollback(True)
    with transaction.atomic():
        wakeup.on_commit_notify()
        assert notifier._thread is None
    wait_until(lambda: sent == [1], within=5)


@pytest.mark.postgresql
@pytest.mark.race
def test_a_storm_of_commits_sends_at_most_one_every_ten_milliseconds(
    notifier: Notifier,
) -> None:
    sent: list[float] = []
    notifier._send = lambda: sent.append(time.monotonic())  # type: ignore[method-assign]
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        wakeup.notify()
    wakeup.flush(5)
    gaps = [b - a for a, b in pairwise(sent)]
    assert min(gaps) >= 0.009
    assert sent[0] - began < 0.2  # the first one does not wait
    wait_until(lambda: len(sent) <= (sent[-1] - began) / 0.01 + 2, within=1)


@pytest.mark.postgresql
@pytest.mark.race
def test_fifty_terminations_leak_nothing_and_do_not_spin(
    listening: Callable[..., tuple[Listener, Woken]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(wakeup, "LONGEST_WAIT", 0.1)
    listener, woken = listening()
    threads = threading.active_count()
    descriptors = len(os.listdir("/proc/self/fd"))
    before = time.process_time()
    began = time.monotonic()
    for _ in range(50):
        pid = wait_until(listeners, within=10)[0]
        woken.clear()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        assert (
            woken.wait()
        )  # it looks once after each return: something may have been missed
        assert len(listeners()) <= 1
    wait_until(listener.healthy, within=10)
    assert (time.process_time() - before) / (time.monotonic() - began) < 0.6
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
    assert len([r for r in caplog.records if "wake-up lost" in r.message]) == 50
    woken.clear()
    wakeup.notify()
    assert woken.wait()


@pytest.mark.postgresql
@pytest.mark.race
def test_a_storm_of_losses_is_answered_with_waits_that_grow_to_a_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[float] = []

    def refuse(name: str) -> Any:
        tries.append(time.monotonic())
        raise ConnectionError("away")

    monkeypatch.setattr("workqueue.connections.plain", refuse)
    listener = Listener(lambda: None)
    listener.start()
    wait_until(lambda: len(tries) >= 6, within=20)
    listener.stop()
    gaps = [b - a for a, b in pairwise(tries)]
    assert gaps[-1] >= 1.0
    assert sorted(gaps) == gaps or gaps[-1] < 1.5
    assert not listener.healthy()
    assert [r.message for r in caplog.records if r.name == "workqueue.wakeup"] == [
        "wake-up lost, polling goes on: ConnectionError: away"
    ]


@pytest.mark.postgresql
@pytest.mark.race
def test_the_notifier_makes_its_connection_again(
    notifier: Notifier, listening: Callable[..., tuple[Listener, Woken]]
) -> None:
    _, woken = listening()
    wakeup.notify()
    assert woken.wait()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'millrace%notifier'"
        )
        # Besides its own that of a test before this one, which sleeps.
        assert cursor.fetchall()
    woken.clear()
    wakeup.notify()
    assert woken.wait()


@pytest.mark.postgresql
@pytest.mark.race
def test_without_a_database_the_notifier_says_so_once_and_goes_on(
    notifier: Notifier,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(name: str) -> Any:
        raise ConnectionError("away")

    with monkeypatch.context() as patch:
        patch.setattr("workqueue.connections.plain", refuse)
        for _ in range(3):
            wakeup.notify()
            wakeup.flush(5)
    told = [r.message for r in caplog.records if r.name == "workqueue.wakeup"]
    assert told == ["cannot wake others, they poll: ConnectionError: away"]
    wakeup.notify()
    wakeup.flush(5)
    assert notifier._connection is not None


@pytest.mark.postgresql
def test_stopping_gives_everything_back(
    listening: Callable[..., tuple[Listener, Woken]],
) -> None:
    assert not listeners()
    descriptors = len(os.listdir("/proc/self/fd"))
    listener, _ = listening()
    assert listeners()
    listener.stop()
    listener.stop()
    assert not listener.healthy()
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    wait_until(lambda: not listeners(), within=5)


@pytest.mark.postgresql
def test_behind_a_transaction_pooler_nothing_listens_and_nothing_is_sent(
    settings: Any, notifier: Notifier
) -> None:
    settings.DATABASE_LISTEN = False
    settings.WAKE_SOCKET = ""
    listener = Listener(lambda: None)
    listener.start()
    wakeup.notify()
    assert (listener._thread, notifier._thread) == (None, None)
    assert not listener.healthy()
    listener.stop()


def test_processes_under_one_start_wake_each_other_by_a_socket(
    settings: Any, tmp_path: Path, listening: Callable[..., tuple[Listener, Woken]]
) -> None:
    settings.DATABASE_LISTEN = False
    settings.WAKE_SOCKET = str(tmp_path)
    listener, woken = listening()
    pid = _child_that_notifies()
    began = time.monotonic()
    assert woken.wait()
    assert time.monotonic() - began < 5
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    listener.stop()
    assert list(tmp_path.iterdir()) == []


def _child_that_notifies() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that threads do not survive is the point
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            wakeup.notify()
            wakeup.flush(5)
            code = 0 if wakeup._notifier._sent.is_set() else 2
        finally:
            os._exit(code)
    return pid


@pytest.mark.postgresql
@pytest.mark.race
def test_a_forked_child_notifies_on_a_connection_of_its_own(
    listening: Callable[..., tuple[Listener, Woken]],
) -> None:
    _, woken = listening()
    wakeup.notify()
    assert woken.wait()
    woken.clear()
    pid = _child_that_notifies()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert woken.wait()
    woken.clear()
    wakeup.notify()
    assert woken.wait()


@pytest.mark.sqlite
def test_on_sqlite_a_commit_of_somebody_else_wakes(
    listening: Callable[..., tuple[Listener, Woken]], notifier: Notifier
) -> None:
    _, woken = listening()
    factories.tenant()
    assert woken.wait(5)
    wakeup.notify()
    assert notifier._thread is None  # there is nobody to send to


@pytest.mark.once
def test_nothing_runs_before_the_first_flag() -> None:
    assert Notifier()._thread is None
    assert Listener(lambda: None)._thread is None
