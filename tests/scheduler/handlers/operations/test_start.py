"""The end of an operation, and its going on, where nobody is at it any more."""

import pytest

from audit.models import Change
from scheduler.handlers.operations import start
from scheduler.handlers.operations.models import BulkOperation
from tests.scheduler.handlers.operations.test_bulk import asked, items
from workqueue import operate
from workqueue.models import WorkItem

pytestmark = pytest.mark.django_db


@pytest.fixture
def interrupted(acme):
    """An operation over two items whose own item was cancelled."""
    items(acme, 2)
    operation = asked()
    assert state(operation) == "pending"
    cancel()
    return operation


def cancel():
    item = WorkItem.objects.get(handler="operations.bulk")
    operate.cancel([item.pk], who="ivan", origin="admin", why="", tenants=None)


def state(operation):
    now = BulkOperation.objects.with_lives().get(pk=operation.pk)
    assert now.lives == (start.item_of(operation) is not None)
    return now.state(lives=now.lives)


def test_one_whose_item_has_gone_is_interrupted_and_not_executing(interrupted):
    assert state(interrupted) == "interrupted"
    interrupted.begin(now=interrupted.asked_at)
    assert state(interrupted) == "interrupted"


def test_one_whose_item_has_gone_is_over_at_once_when_it_is_stopped(interrupted):
    assert start.stop(interrupted, who="olga", origin="admin", why="wrong filter")
    interrupted.refresh_from_db()
    assert interrupted.finished_at
    assert state(interrupted) == "cancelled"
    assert Change.objects.get(verb="stopped").old == {"state": "interrupted"}
    assert not start.go_on(interrupted, who="olga", origin="admin", why="after all")


def test_one_that_was_to_stop_is_stopped_when_its_item_is_cancelled(acme):
    operation = asked()
    start.stop(operation, who="olga", origin="admin", why="wrong filter")
    cancel()
    assert state(operation) == "cancelled"


def test_it_goes_on_where_it_was_when_an_operator_says_so(interrupted, carry_out):
    assert start.go_on(interrupted, who="olga", origin="admin", why="CHG-2")
    assert state(interrupted) == "pending"
    assert not start.go_on(interrupted, who="olga", origin="admin", why="twice")
    change = Change.objects.get(verb="continued")
    assert (change.who, change.why) == ("olga", "CHG-2")
    carry_out(interrupted)
    assert interrupted.results.filter(done=True).count() == 2
