"""The orders of a list: by an index the whole ledger, by anything else a stretch of it."""

from datetime import UTC, datetime, timedelta

import pytest

from audit import sorting
from audit.models import Run
from tests import factories, screens

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)


def test_an_unknown_order_is_the_usual_one():
    assert sorting.of("; DROP TABLE") == sorting.of("")
    assert sorting.of("").by == "finished_at"


def test_the_order_of_finishes_is_that_of_all_runs():
    rows, edge = sorting.within(Run.objects.all(), sorting.of("oldest"))
    assert edge is None
    assert "finished_at" not in str(rows.query).partition("WHERE")[2]


def test_another_order_is_that_of_the_newest_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sorting, "LOOKED", 3)
    acme = factories.tenant("acme")
    for number in range(6):
        screens.run(acme, finished_at=NOW - timedelta(minutes=number))
    rows, edge = sorting.within(Run.objects.all(), sorting.of("ran"))
    assert edge == NOW - timedelta(minutes=3)
    assert rows.count() == 4


def test_what_has_no_such_time_is_left_out():
    acme = factories.tenant("acme")
    screens.run(acme, started_at=None, claimed_at=None, outcome="cancelled")
    for name in ("ran", "waited", "started"):
        assert not sorting.within(Run.objects.all(), sorting.of(name))[0].exists()
    assert sorting.within(Run.objects.all(), sorting.of("enqueued"))[0].exists()
