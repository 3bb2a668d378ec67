"""The test set-up itself: rows of migrations survive, processes see the rows."""

import pytest

from scheduler.models import MasterLease
from tests import factories
from workqueue.models import Tenant


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("nth", [1, 2], ids=str)
def test_rows_of_migrations_are_back_after_a_test_that_committed(nth: int) -> None:
    assert MasterLease.objects.count() == 1
    assert list(Tenant.objects.values_list("is_platform", flat=True)) == [True]
    factories.tenant("acme")


def test_a_process_works_on_the_rows_of_the_test(manage) -> None:
    factories.tenant("acme")
    code = "from workqueue.models import Tenant; print(Tenant.objects.get(slug='acme').name)"
    result = manage("shell", "-v", "0", "-c", code)
    assert result.stdout.strip() == "Acme", result.stderr
