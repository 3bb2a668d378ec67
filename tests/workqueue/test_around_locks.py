"""Around locks: halving until the tenants that are held stand alone."""

from collections.abc import Collection
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from audit import clock
from workqueue import around_locks
from workqueue.around_locks import spread

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


def test_where_nobody_is_held_there_is_one_try(transactional_db: None) -> None:
    insert = Held()
    with transaction.atomic():
        assert spread(insert, everybody=lambda: EVERYBODY) == (100, [])
    assert insert.tries == 1


@postgresql
def test_exactly_the_held_ones_are_left_out(transactional_db: None) -> None:
    insert = Held(17, 18, 99)
    with transaction.atomic():
        count, out = spread(insert, everybody=lambda: EVERYBODY)
    assert (count, sorted(out)) == (97, [17, 18, 99])
    assert sorted(insert.inserted) == [id for id in EVERYBODY if id not in (17, 18, 99)]


@postgresql
def test_those_held_before_are_not_in_the_first_try(transactional_db: None) -> None:
    insert = Held(5, 6)
    with transaction.atomic():
        count, out = spread(insert, everybody=lambda: EVERYBODY, last=[5, 6, 7])
    assert (count, sorted(out)) == (98, [5, 6])
    assert insert.inserted[:97] == [id for id in EVERYBODY if id not in (5, 6, 7)]


@postgresql
def test_when_the_time_is_spent_the_rest_is_left_out_those_not_reached_first(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Held(1, 90)
    steps = iter(range(1000))
    monkeypatch.setattr(
        clock, "steady", lambda: next(steps) * 0.3
    )  # ten halves and no more
    with transaction.atomic():
        count, out = spread(insert, everybody=lambda: EVERYBODY)
    assert count + len(out) == 100
    assert set(insert.inserted) | set(out) == set(EVERYBODY)
    assert out[-1] == 1  # found held: tried last next time
    assert 90 in out[:-1]


@postgresql
def test_other_errors_are_not_taken_for_locks(transactional_db: None) -> None:
    def insert(**_: Any) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return 0

    with pytest.raises(Exception, match="division by zero"), transaction.atomic():
        spread(insert, everybody=lambda: EVERYBODY)


@postgresql
def test_the_callers_timeouts_are_left_as_they_were(transactional_db: None) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '2s'")
        cursor.execute("SET LOCAL statement_timeout = '10s'")
        spread(Held(3), everybody=lambda: EVERYBODY)
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
    try:
        count, out = around_locks._halve(
            insert, [p for p in parts if p], done=0, deadline=clock.steady() + 60
        )
    finally:
        around_locks._try = original
    assert sorted([*insert.inserted, *out]) == everybody
    assert count == len(insert.inserted)
    assert set(out) == held & set(everybody)


def _quietly(insert: Held, only: Collection[int]) -> int | None:
    try:
        return insert(only=only)
    except OperationalError:
        return None
