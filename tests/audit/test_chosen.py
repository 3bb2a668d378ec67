"""All runs that a list's filters match, as they were when it was asked."""

from datetime import timedelta
from typing import Any

import pytest

from audit import chosen, clock
from tests.audit.conftest import recorded

pytestmark = pytest.mark.django_db


def which(query: str = "", **values: Any) -> chosen.Which:
    return chosen.Which(
        **{
            "query": query,
            "asked_at": clock.now(),
            "tenants": None,
            "outcomes": ("failed", "cancelled"),
            "unasked": ("failed",),
            **values,
        }
    )


def test_outcomes_that_nobody_named_are_the_bad_ones_alone():
    failed = recorded(outcome="failed")
    cancelled = recorded(outcome="cancelled")
    recorded(outcome="succeeded")
    assert [run.id for run in chosen.runs(which(), limit=9).rows] == [str(failed.id)]
    named = chosen.runs(which("outcome=cancelled&outcome=succeeded"), limit=9).rows
    assert [run.id for run in named] == [str(cancelled.id)]


def test_the_last_24_hours_are_those_before_it_was_asked():
    now = clock.now()
    recorded(outcome="failed", finished_at=now - timedelta(hours=30))
    yesterday = recorded(outcome="failed", finished_at=now - timedelta(hours=20))
    recorded(outcome="failed", finished_at=now - timedelta(minutes=1))
    then = which("since=24+h", asked_at=now - timedelta(hours=2))
    assert [run.id for run in chosen.runs(then, limit=9).rows] == [str(yesterday.id)]


def test_a_cursor_goes_on_behind_its_row_newest_first():
    now = clock.now()
    runs = [
        recorded(outcome="failed", finished_at=now - timedelta(minutes=n))
        for n in range(1, 4)
    ]
    first = chosen.runs(which(), limit=2)
    rest = chosen.runs(which(), after=first.after, limit=2)
    assert rest.after == ""
    assert [run.id for run in (*first.rows, *rest.rows)] == [
        str(run.id) for run in runs
    ]


def test_other_tenants_runs_never_match():
    mine = recorded(outcome="failed", tenant_id=1)
    recorded(outcome="failed", tenant_id=2)
    found = chosen.runs(which(tenants=frozenset([1])), limit=9).rows
    assert [run.id for run in found] == [str(mine.id)]


def test_filters_are_told_in_words_and_unreadable_ones_as_problems():
    assert [chip.value for chip in chosen.chips(which("tenant=acme"))] == ["acme"]
    assert chosen.problems(which("tenant=acme")) == []
    [problem] = chosen.problems(which("ran_over=odd"))
    assert "is no length of time" in problem
