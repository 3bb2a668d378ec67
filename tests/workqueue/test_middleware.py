"""Every request knows which tenants it may see."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.test import RequestFactory

from tests import factories
from workqueue.middleware import TenantScope

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("who", ["stranger", "member", "superuser"])
def test_a_request_carries_the_ids_of_its_tenants(who: str, rf: RequestFactory) -> None:
    tenant = factories.tenant()
    users: dict[str, Any] = {
        "stranger": (AnonymousUser(), frozenset()),
        "member": (factories.member(tenant), frozenset({tenant.pk})),
        "superuser": (factories.superuser(), None),
    }
    user, expected = users[who]
    seen: list[Any] = []

    def view(request: Any) -> HttpResponse:
        seen.append(request.tenants)
        return HttpResponse()

    request = rf.get("/")
    request.user = user
    TenantScope(view)(request)
    assert seen == [expected]
