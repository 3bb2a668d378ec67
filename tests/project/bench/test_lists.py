"""Pages over a filled ledger: a small one here, five million by hand with `bench --only lists`."""

import pytest

from audit.models import Run
from project.bench import lists
from workqueue.models import WorkItem

pytestmark = [
    pytest.mark.race,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
]


def test_no_page_filter_search_or_order_takes_over_fifteen_statements() -> None:
    lists.fill(4000)
    assert WorkItem.objects.pending().count() == lists.TENANTS
    assert Run.objects.filter(node__startswith="app-").count() == 4000
    found = lists.measured(4000, times=1)
    assert len(found) == len(lists.addresses(4000)) >= 38
    assert found["overview"]["statements"] <= 12
    over = {name: said for name, said in found.items() if said["statements"] > 15}
    assert over == {}
    assert all(said["p95"] > 0 for said in found.values())
