"""A page of our own: the shell around it, and who is told that it does not exist."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory

from audit import page
from tests import factories


@page.needs(platform=True)
def secret(request: HttpRequest) -> HttpResponse:
    return HttpResponse("seen")


@page.needs("audit.view_run", methods=page.ASKS)
def runs(request: HttpRequest) -> HttpResponse:
    return HttpResponse("runs")


def asks(user: Any, method: str = "get", tenants: Any = None) -> HttpRequest:
    request = getattr(RequestFactory(), method)("/")
    request.user = user
    request.tenants = tenants
    return request


def test_a_page_of_the_platform_does_not_exist_for_others():
    request = asks(AnonymousUser(), tenants=frozenset([1]))
    assert not page.guard_of(secret).opens(request)
    with pytest.raises(Http404):
        secret(request)


def test_a_page_of_the_platform_is_there_for_its_staff():
    request = asks(AnonymousUser())
    assert page.guard_of(secret).opens(request)
    assert secret(request).content == b"seen"


def test_a_request_that_no_middleware_scoped_sees_no_tenant():
    request = RequestFactory().get("/")
    assert page.tenants(request) == frozenset()
    with pytest.raises(Http404):
        secret(request)


@pytest.mark.django_db
def test_a_permission_is_asked_on_the_server_and_the_menu_asks_the_same():
    stranger, reader = asks(AnonymousUser()), asks(factories.superuser())
    assert not page.guard_of(runs).opens(stranger)
    with pytest.raises(PermissionDenied):
        runs(stranger)
    assert page.guard_of(runs).opens(reader)
    assert runs(reader).content == b"runs"


def test_a_method_that_a_page_does_not_know_is_refused_before_anything_else():
    assert secret(asks(AnonymousUser(), "post")).status_code == 405
    assert runs(asks(AnonymousUser(), "delete")).status_code == 405


@pytest.mark.django_db
def test_a_page_cannot_replace_the_menu_by_accident():
    request = RequestFactory().get("/")
    request.user = factories.superuser()
    request.tenants = None  # type: ignore[attr-defined]
    response = page.render(request, "admin/page.html", title="T", available_apps=[])
    assert response.context_data["available_apps"] != []


def test_an_app_without_views_has_no_pages():
    assert page.patterns("project.management") == []
