"""A page of our own: the shell around it, and who is told that it does not exist."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory

from audit import page
from tests import factories


@page.platform_only
def secret(request: HttpRequest) -> HttpResponse:
    return HttpResponse("seen")


def test_a_page_of_the_platform_does_not_exist_for_others():
    request = RequestFactory().get("/")
    request.tenants = frozenset([1])  # type: ignore[attr-defined]
    with pytest.raises(Http404):
        secret(request)


def test_a_page_of_the_platform_is_there_for_its_staff():
    request = RequestFactory().get("/")
    request.tenants = None  # type: ignore[attr-defined]
    assert secret(request).content == b"seen"


def test_a_request_that_no_middleware_scoped_sees_no_tenant():
    request = RequestFactory().get("/")
    assert page.tenants(request) == frozenset()
    with pytest.raises(Http404):
        secret(request)


def test_a_permission_is_asked_on_the_server():
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with pytest.raises(PermissionDenied):
        page.require(request, "audit.view_run")


@pytest.mark.django_db
def test_a_page_cannot_replace_the_menu_by_accident():
    request = RequestFactory().get("/")
    request.user = factories.superuser()
    request.tenants = None  # type: ignore[attr-defined]
    response = page.render(request, "admin/page.html", title="T", available_apps=[])
    assert response.context_data["available_apps"] != []


def test_an_app_without_views_has_no_pages():
    assert page.patterns("project.management") == []
