"""Around locks: halving until the tenants that are held stand alone."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from audit import clock
from workqueue import around_locks
from workqueue.around_locks import Spread, spread

postgresql = pytest.mark.postgresql
EVERYBODY = list(range(1, 101))


class Held:
    """An insert that fails as PostgreSQL does where a tenant is held."""

    def __init__(self, *held: int, everybody: Collection[int] = EVERYBODY) -> None:
        self.held, self.everybody = set(held), everybody
        self.inserted: list[int] = []
        self.tries = 0

    def __call__(
        self, *, only: Collection[int] | None = None, without: Collection[int] = ()
    ) -> int:
        self.tries += 1
        wanted = [
            id
            for id in (self.everybody if only is None else only)
            if id not in set(without)
        ]
        if self.held & set(wanted):
            problem = OperationalError("canceling statement due to lock timeout")
            problem.__cause__ = type(
                "LockNotAvailable", (Exception,), {"sqlstate": "55P03"}
            )()
            raise problem
        self.inserted += wanted
        return len(wanted)


def everybody_but(*held: int) -> list[int]:
    return [id for id in EVERYBODY if id not in held]


def spread_over(insert: Held, *, last: Sequence[int] = ()) -> Spread:
    with transaction.atomic():
        return spread(
            insert,
            called=len(insert.everybody),
            everybody=lambda: list(insert.everybody),
            last=last,
        )


class Slow(Held):
    """An insert that takes its time."""

    def __init__(self, *, each: float, everybody: Collection[int] = EVERYBODY) -> None:
        super().__init__(everybody=everybody)
        self.each = each  # seconds

    def __call__(
        self, *, only: Collection[int] | None = None, without: Collection[int] = ()
    ) -> int:
        count = len(set(self.everybody if only is None else only) - set(without))
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(%s)", [count * self.each])
        return super().__call__(only=only, without=without)


def test_where_nobody_is_held_there_is_one_try(transactional_db: None) -> None:
    insert = Held()
    assert spread_over(insert) == Spread(count=100, held=[], not_reached=0)
    assert insert.tries == 1


@postgresql
def test_exactly_the_held_ones_are_left_out(transactional_db: None) -> None:
    insert = Held(17, 18, 99)
    found = spread_over(insert)
    assert (found.count, sorted(found.held)) == (97, [17, 18, 99])
    assert found.not_reached == 0
    assert sorted(insert.inserted) == everybody_but(17, 18, 99)


@postgresql
def test_those_held_before_are_not_in_the_first_try(transactional_db: None) -> None:
    insert = Held(5, 6)
    found = spread_over(insert, last=[5, 6, 7])
    assert (found.count, sorted(found.held)) == (98, [5, 6])
    assert insert.inserted[:97] == everybody_but(5, 6, 7)


@postgresql
def test_very_many_are_never_tried_by_one_insert(transactional_db: None) -> None:
    insert = Held(everybody=range(around_locks.AT_ONCE + 1))
    assert spread_over(insert).count == around_locks.AT_ONCE + 1
    assert insert.tries == 10


@postgresql
def test_when_the_time_is_spent_the_rest_is_left_out_those_found_held_last(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Held(1, 90)
    steps = iter(range(1000))
    monkeypatch.setattr(
        clock, "steady", lambda: next(steps) * 0.3
    )  # ten halves and no more
    found = spread_over(insert)
    assert found.count + len(found.held) == 100
    assert set(insert.inserted) | set(found.held) == set(EVERYBODY)
    assert found.held[-1] == 1
    assert 90 in found.held[:-1]


@postgresql
def test_one_who_is_held_keeps_nobody_of_another_tenth_waiting(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Held(0, everybody=range(around_locks.AT_ONCE + 1))
    steps = iter(range(1000))
    monkeypatch.setattr(
        clock, "steady", lambda: next(steps) * 0.28
    )  # ten tenths and no more
    found = spread_over(insert)
    assert found.count == len(insert.everybody) - 2001
    assert len(found.held) == 2001
    assert found.not_reached == 0


@postgresql
def test_what_takes_too_long_is_cut_until_it_does_not_and_nobody_is_said_to_hold_it(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(around_locks, "IN_ALL", 1)
    insert = Slow(each=0.008)  # seconds; all of them would take too long, a tenth not
    found = spread_over(insert)
    assert found.held == []
    assert found.count == len(insert.inserted) > 0
    assert found.count + found.not_reached == 100


@postgresql
def test_one_who_takes_too_long_alone_is_not_reached(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(around_locks, "IN_ALL", 0.3)
    insert = Slow(each=1, everybody=[1])
    assert spread_over(insert, last=[2]) == Spread(count=0, held=[2], not_reached=1)


@postgresql
def test_other_errors_are_not_taken_for_locks(transactional_db: None) -> None:
    def insert(**_: Any) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return 0

    with pytest.raises(Exception, match="division by zero"), transaction.atomic():
        spread(insert, called=1, everybody=lambda: EVERYBODY)


@postgresql
def test_the_callers_timeouts_are_left_as_they_were(transactional_db: None) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '2s'")
        cursor.execute("SET LOCAL statement_timeout = '10s'")
        spread(Held(3), called=100, everybody=lambda: EVERYBODY)
        cursor.execute(
            "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
        )
        assert cursor.fetchone() == ("2s", "10s")


@given(
    held=st.sets(st.integers(1, 60), max_size=6),
    last=st.sets(st.integers(1, 60), max_size=6),
    size=st.integers(1, 60),
)
def test_everybody_is_inserted_once_or_left_out_once(
    held: set[int], last: set[int], size: int
) -> None:
    everybody = list(range(1, size + 1))
    insert = Held(*held, everybody=everybody)
    parts = [sorted(last & set(everybody)), [id for id in everybody if id not in last]]
    original, around_locks._try = (
        around_locks._try,
        lambda insert, **k: _quietly(insert, k["only"]),
    )  # type: ignore[assignment]
    work = around_locks._Work([])
    work.suspects = [part for part in parts if part]
    try:
        found = around_locks._work_off(
            insert, work, done=0, deadline=clock.steady() + 60
        )
    finally:
        around_locks._try = original
    assert sorted([*insert.inserted, *found.held]) == everybody
    assert (found.count, found.not_reached) == (len(insert.inserted), 0)
    assert set(found.held) == held & set(everybody)


def _quietly(insert: Held, only: Collection[int]) -> tuple[int, str]:
    try:
        return insert(only=only), ""
    except OperationalError:
        return 0, "55P03"
