"""How many items wait, execute and are held, without counting on for ever."""

import pytest

from tests import factories, screens
from workqueue import depth
from workqueue.models import WorkItem

pytestmark = pytest.mark.django_db


def test_every_state_is_counted_by_one_statement(django_assert_num_queries):
    acme = factories.tenant()
    screens.pending(acme)
    screens.pending(acme, dedup_key="2")
    screens.held(acme, dedup_key="3")
    with django_assert_num_queries(1):
        found = depth.read(depth.by_status(WorkItem.objects.all()))
    assert found == {"pending": 2, "executing": 0, "held": 1}
    nothing = depth.read(depth.by_status(WorkItem.objects.none()))
    assert sum(nothing.values()) == 0


def test_it_counts_no_further_than_anybody_reads(monkeypatch):
    monkeypatch.setattr(depth, "MOST", 1)
    acme = factories.tenant()
    for number in range(3):
        screens.pending(acme, dedup_key=str(number))
    waiting = depth.read(depth.by_status(WorkItem.objects.all()))["pending"]
    assert (waiting, depth.shown(waiting), depth.shown(1)) == (2, "1+", "1")
