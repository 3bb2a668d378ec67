"""Whether a page of an app below may offer an operator's verb."""

import pytest
from django.http import HttpRequest
from django.template import Context, Template

from tests import factories, screens
from workqueue import tenancy
from workqueue.models import Membership
from workqueue.templatetags import operating

pytestmark = pytest.mark.django_db
assert operating.register


@pytest.mark.parametrize(
    ("role", "rights", "shown"),
    [
        (Membership.Role.OPERATOR, ["workqueue.retry_item"], "offered"),
        (Membership.Role.OPERATOR, [], ""),
        (Membership.Role.VIEWER, ["workqueue.retry_item"], ""),
    ],
)
def test_it_is_offered_to_who_may_do_it_to_some_tenant(role, rights, shown):
    request = HttpRequest()
    request.user = screens.staff(factories.tenant(), *rights, role=role)
    request.tenants = tenancy.scope(request.user)
    page = '{% load operating %}{% offers "workqueue.retry_item" as yes %}{% if yes %}offered{% endif %}'
    assert Template(page).render(Context({"request": request})) == shown
