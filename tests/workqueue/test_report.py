"""What a worker says of itself."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from workqueue import connections, report
from workqueue.live import Live
from workqueue.policy import resolve

pytestmark = pytest.mark.usefixtures("timetable")


def slots(used: int, stuck: int = 0) -> Any:
    return SimpleNamespace(
        offered=used,
        running={n: n for n in range(3)},
        waiting={},
        stuck=dict.fromkeys(range(stuck)),
        durations=deque(),
    )


def live(**values: Any) -> Live:
    policy, adjusted = resolve(values)
    return Live(policy=policy, version=12, adjusted=adjusted)


def said(hand: Any, of: Live, *, draining: bool = False) -> dict[str, Any]:
    return report.report_of(hand, live=of, draining=draining)


def test_without_a_pool_nothing_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "size", lambda: None)
    monkeypatch.setattr(connections, "serves_items", lambda: None)
    found = said(slots(10), live())
    assert found["slots"] == {"asked": 10, "used": 10, "why": ""}
    assert (found["in_flight"], found["loop"]) == (3, "running")
    assert found["connections"]["pool"] is None
    assert found["settings_version"] == 12
    assert "act" in found["handlers"]


def test_a_pool_that_serves_fewer_items_is_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "size", lambda: 12)
    monkeypatch.setattr(connections, "serves_items", lambda: 8)
    found = said(slots(8, stuck=1), live(WORKER_CONCURRENCY=12))
    assert found["slots"]["asked"] == 12
    assert found["slots"]["why"] == (
        "Its pool of 12 connections serves 8. Raise DB_POOL_SIZE or DB_MAX_OVERFLOW there."
        " 1 of its threads are stuck in runs over their time limit."
    )


def test_stuck_threads_are_no_reason_where_nothing_is_reduced() -> None:
    found = said(slots(10, stuck=1), live())
    assert found["slots"]["why"] == ""
    assert found["stuck"] == 1


def test_a_value_that_got_in_by_sql_is_shown_with_what_is_used_instead() -> None:
    found = said(slots(1), live(WORKER_CONCURRENCY=-3))
    [adjusted] = found["adjusted"]
    assert (adjusted["key"], adjusted["asked"], adjusted["used"]) == (
        "WORKER_CONCURRENCY",
        "-3",
        "1",
    )
    assert adjusted["why"]


def test_the_state_of_the_loop_is_a_sentence_of_its_own() -> None:
    off = live(START_WORKERS_ON_MASTER=False)
    assert said(slots(1), off)["loop"] == "stopped: START_WORKERS_ON_MASTER is off"
    assert said(slots(1), live(), draining=True)["loop"] == "draining"
