"""Stock lists and forms of rows with a tenant: whose rows are there, and who writes them."""

import pytest
from django.contrib import admin
from django.http import Http404, HttpRequest

from scheduler.handlers.notifications.models import Channel
from tests import factories, screens
from workqueue import tenancy
from workqueue.models import Tenant
from workqueue.own import OwnTenants

pytestmark = pytest.mark.django_db
RIGHTS = ("view", "add", "change", "delete")


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def asks(of: Tenant, role: str) -> HttpRequest:
    request = HttpRequest()
    rights = [f"notifications.{right}_channel" for right in RIGHTS]
    request.user = screens.staff(of, *rights, role=role)
    request.tenants = tenancy.scope(request.user)  # type: ignore[attr-defined]
    return request


def channels() -> OwnTenants:
    return OwnTenants(Channel, admin.site)


def test_only_the_readers_rows_are_there_and_others_are_404(acme: Tenant):
    other = factories.tenant("granite")
    mine = Channel.objects.create(tenant=acme, name="mine", kind="web")
    theirs = Channel.objects.create(tenant=other, name="theirs", kind="web")
    request = asks(acme, "administrator")
    assert list(channels().get_queryset(request)) == [mine]
    with pytest.raises(Http404):
        channels().history_view(request, str(theirs.pk))
    assert list(channels().get_queryset(asks(factories.platform(), "viewer"))) == [
        mine,
        theirs,
    ]


def test_a_row_is_written_by_those_who_administer_its_tenant(acme: Tenant):
    row = Channel.objects.create(tenant=acme, name="mine", kind="web")
    for role, allowed in (("administrator", True), ("operator", False)):
        request = asks(acme, role)
        assert channels().has_view_permission(request, row)
        for may in ("add", "change", "delete"):
            ask = getattr(channels(), f"has_{may}_permission")
            assert ask(request) is allowed
        assert channels().has_change_permission(request, row) is allowed


def test_an_administrator_chooses_among_his_own_tenants(acme: Tenant):
    factories.tenant("granite")
    field = Channel._meta.get_field("tenant")
    mine = channels().formfield_for_foreignkey(field, asks(acme, "administrator"))
    assert list(mine.queryset) == [acme]
