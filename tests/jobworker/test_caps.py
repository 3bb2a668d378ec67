"""Caps: bounds, the clamp to the pool, and the reason that the card shows."""

from typing import Any

import pytest

from jobworker import caps
from jobworker.caps import limits, resolve
from workqueue import connections, policy
from workqueue.exceptions import InvalidValues

pytestmark = pytest.mark.once
BAD: list[Any] = [
    -1, 1001, 10**30, 1.5, float("nan"), float("inf"), True, None, "", "x", "१२", "1e3",
    "--1", "0x10", [], {}, [1], {"a": 1}, "1;drop", "\0", "9" * 5000, -(10**30), "½", " ", "∞",
]  # fmt: skip


def test_the_defaults_are_the_documented_ones() -> None:
    found, adjusted = resolve({})
    assert found.as_values() == {
        "heavy": 2,
        "medium": 1,
        "light": 3,
        "total": 3,
        "WORKER_EXECUTOR_THREADS": 0,
    }
    assert found.ceiling() == 25
    assert adjusted == ()


@pytest.mark.parametrize("key", [key.name for key in caps.DECLARATION.keys])
@pytest.mark.parametrize("value", BAD, ids=range(len(BAD)))
def test_no_stored_value_stops_anybody_and_the_form_refuses_it(
    key: str, value: Any
) -> None:
    found, _ = resolve({key: value})
    used = found.as_values()
    for each in caps.DECLARATION.keys:
        assert each.low <= used[each.name] <= each.high
    if isinstance(value, str) and not value.strip():
        return  # an empty field means the default
    with pytest.raises(InvalidValues) as refused:
        policy.clean({key: value}, declaration=caps.DECLARATION)
    assert key in refused.value.problems


@pytest.mark.parametrize("stored", [None, [], "x", 7, {"unknown": 1}])
def test_whatever_stands_in_the_table_there_are_caps(stored: Any) -> None:
    assert resolve(stored)[0].total == 3
    assert resolve(stored)[1] != () or stored == {}


@pytest.mark.parametrize(
    ("pool", "jobs"),
    [(1, 1), (4, 1), (5, 1), (6, 1), (8, 2), (10, 3), (14, 5), (20, 8)],
)
def test_a_pool_serves_half_of_what_it_has_beyond_four(pool: int, jobs: int) -> None:
    assert caps.serves(pool) == jobs
    assert caps.serves(caps.pool_for(jobs)) == jobs


def test_the_total_is_reduced_to_what_the_pool_serves_in_the_references_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "size", lambda: 10)
    found = limits(resolve({"total": 12})[0], threads=25)
    assert (found.total, found.usable) == (12, 3)
    [one] = found.reduced
    assert (one.what, one.asked, one.used) == ("total", 12, 3)
    assert one.why == (
        "DB pool of 10 serves 3 concurrent job(s); "
        "raise DB_POOL_SIZE / DB_MAX_OVERFLOW to use 12"
    )


@pytest.mark.parametrize(
    ("pool", "stuck", "jobs"),
    [(10, 1, 2), (10, 2, 2), (10, 3, 1), (10, 5, 0), (10, 9, 0), (5, 1, 0), (11, 1, 3)],
)
def test_stuck_threads_take_of_the_pool_until_it_serves_nobody(
    pool: int, stuck: int, jobs: int
) -> None:
    assert caps.serves(pool, stuck=stuck) == jobs


@pytest.mark.parametrize(
    ("stuck", "why"),
    [
        (
            3,
            "DB pool of 10 serves 1 concurrent job(s) beside 3 stuck thread(s), each with "
            "a connection; restart this worker",
        ),
        (
            6,
            "DB pool of 10 serves 0 concurrent job(s) beside 6 stuck thread(s), each with "
            "a connection; it restarts once its jobs have ended",
        ),
    ],
)
def test_what_stuck_threads_take_is_a_reduction_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, stuck: int, why: str
) -> None:
    monkeypatch.setattr(connections, "size", lambda: 10)
    found = limits(resolve({})[0], threads=25, stuck=stuck)
    [one] = found.reduced
    assert (one.what, one.asked, one.used) == ("total", 3, found.usable)
    assert one.why == why


def test_stuck_threads_that_take_nothing_change_no_word_of_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "size", lambda: 11)
    of = resolve({"total": 12})[0]
    assert limits(of, threads=25, stuck=1) == limits(of, threads=25)


def test_without_a_pool_nothing_is_clamped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "size", lambda: None)
    found = limits(resolve({"total": 12})[0], threads=25)
    assert (found.total, found.usable, found.reduced) == (12, 12, ())


def test_too_few_threads_reduce_the_total_and_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "size", lambda: None)
    found = limits(resolve({"total": 12})[0], threads=2)
    assert (found.total, found.usable) == (2, 2)
    assert "WORKER_EXECUTOR_THREADS" in found.reduced[0].why
