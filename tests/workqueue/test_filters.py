"""What the list of items can be asked."""

from datetime import timedelta

import pytest
from django.http import QueryDict

from audit import clock
from tests import factories, screens
from workqueue.filters import ItemFilters
from workqueue.models import WorkItem


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    [
        "tenant=acme",
        "handler=a.b",
        "status=held",
        "text=STOPPED",
        "worker=queue",
        "older_than=1h",
        "tenant=acme&status=held",
    ],
)
def test_each_filter_finds_the_item_and_leaves_the_other_out(query: str):
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    old = clock.now() - timedelta(hours=2)
    wanted = screens.held(acme, handler="a.b", node="queue-1, 3", enqueued_at=old)
    screens.pending(granite, handler="a.c")
    found = ItemFilters(QueryDict(query), queryset=WorkItem.objects.all())
    assert list(found.qs) == [wanted]
    assert not found.form.errors
