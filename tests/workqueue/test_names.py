"""What the ledger's screens are told about handlers and tenants."""

import pytest

from tests import factories
from workqueue import names, registry


@pytest.mark.once
def test_titles_are_those_of_the_timetable_in_its_order(timetable: None):
    assert names.titles() == {key: row.title for key, row in registry.rows().items()}
    assert names.title("act") == "Act"
    assert names.title("retired.handler") == "retired.handler"


@pytest.mark.django_db
def test_tenants_are_limited_to_those_that_the_reader_may_see():
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    assert names.tenants(frozenset([acme.pk]), limit=9) == ["acme"]
    assert names.tenants(frozenset(), limit=9) == []
    assert set(names.tenant_ids(["acme", "granite", "x"]).values()) == {
        acme.pk,
        granite.pk,
    }
