"""Who may do what: the tenant, the permission and the role must agree."""

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from tests import factories, screens
from workqueue import access, tenancy
from workqueue.models import Membership, Tenant

pytestmark = pytest.mark.django_db
RIGHT, SET = "workqueue.cancel_item", "workqueue.edit_caps"


def asks(user) -> HttpRequest:
    request = HttpRequest()
    request.user = user
    request.tenants = tenancy.scope(user)
    return request


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


@pytest.mark.parametrize(
    ("role", "rights", "allowed"),
    [
        ("viewer", [RIGHT], False),
        ("operator", [], False),
        ("operator", [RIGHT], True),
        ("administrator", [RIGHT], True),
    ],
)
def test_a_member_needs_the_permission_and_more_than_a_viewers_role(
    acme: Tenant, role: str, rights: list[str], allowed: bool
):
    request = asks(screens.staff(acme, *rights, role=role))
    assert access.may(request, RIGHT, acme.pk) is allowed
    assert access.sees(request, acme.pk)


def test_nothing_of_another_tenant_or_of_the_platform_is_a_members(acme: Tenant):
    other = factories.tenant("granite")
    request = asks(screens.staff(acme, RIGHT, SET))
    for tenant_id in (other.pk, None):
        assert not access.sees(request, tenant_id)
        assert not access.may(request, RIGHT, tenant_id)
    assert not access.may(request, SET, None)
    with pytest.raises(PermissionDenied):
        access.require(request, RIGHT, [acme.pk, other.pk])


def test_a_role_in_the_platform_tenant_holds_everywhere(acme: Tenant):
    operator = asks(screens.staff(factories.platform(), RIGHT))
    assert access.may(operator, RIGHT, acme.pk)
    assert access.may(operator, RIGHT, None)
    assert not access.administers(operator, None)
    viewer = asks(
        screens.staff(factories.platform(), RIGHT, role=Membership.Role.VIEWER)
    )
    assert access.sees(viewer, acme.pk)
    assert not access.may(viewer, RIGHT, acme.pk)


def test_a_superuser_may_do_everything_and_a_list_asks_once(
    acme: Tenant, django_assert_num_queries
):
    assert access.operates(asks(factories.superuser())) is None
    request = asks(screens.staff(acme, RIGHT))
    access.may(request, RIGHT, acme.pk)
    with django_assert_num_queries(0):
        assert all(access.may(request, RIGHT, acme.pk) for _ in range(50))
