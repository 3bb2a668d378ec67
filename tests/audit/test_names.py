"""Who tells the ledger's screens what keys are called."""

import pytest

from audit import names
from tests import factories


@pytest.mark.once
def test_without_anybody_who_knows_keys_stand_for_themselves(settings):
    settings.AUDIT_NAMES = ""
    known = names.names()
    assert known.title("a.b") == "a.b"
    assert known.titles() == {}
    assert known.list_of("a.b") == "runs"
    assert known.tenant_ids(["acme"]) == {}
    assert known.tenants(None, limit=5) == []


@pytest.mark.django_db
def test_the_setting_leads_to_who_knows():
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    known = names.names()
    assert known.title("no.such") == "no.such"
    assert known.tenant_ids(["acme", "gone"]) == {"acme": acme.pk}
    assert known.tenants(frozenset([granite.pk]), limit=5) == ["granite"]
    assert known.tenants(None, limit=1) == ["acme"]
