"""Operations and their results are kept for 90 days, whatever became of them."""

from datetime import timedelta

import pytest

from audit import clock
from scheduler.handlers.operations import start
from scheduler.handlers.operations.models import BulkOperation, BulkResult
from scheduler.handlers.operations.retention import KEPT, delete_old
from tests.scheduler.handlers.operations.test_bulk import asked, items
from workqueue.models import WorkItem

pytestmark = pytest.mark.django_db


def old(carry_out, **values):
    """An operation over one item that was asked for, and carried out, long ago."""
    operation = asked(**values)
    carry_out(operation)
    WorkItem.objects.filter(handler="operations.bulk").delete()
    BulkOperation.objects.filter(pk=operation.pk).update(
        asked_at=clock.now() - KEPT - timedelta(seconds=1)
    )
    return operation


def test_they_go_with_their_results_and_younger_ones_stay(acme, carry_out):
    items(acme, 2)
    old(carry_out)
    young = asked()
    carry_out(young)
    assert delete_old(clock.now(), limit=100) == 3
    assert BulkOperation.objects.get() == young
    assert set(BulkResult.objects.values_list("operation", flat=True)) <= {young.pk}


def test_one_that_was_interrupted_goes_and_one_that_somebody_is_at_stays(
    acme, carry_out
):
    old(carry_out)
    waits = old(carry_out)
    BulkOperation.objects.update(finished_at=None)
    WorkItem.objects.all().delete()
    start.go_on(waits, who="olga", origin="admin", why="late")
    assert delete_old(clock.now(), limit=100) == 1
    assert BulkOperation.objects.get() == waits


def test_no_step_takes_more_rows_than_it_may(acme, carry_out):
    items(acme, 5)
    old(carry_out)
    assert [delete_old(clock.now(), limit=2) for _ in range(5)] == [2, 2, 2, 0, 0]
    assert not BulkOperation.objects.exists()
