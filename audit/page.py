"""page: how a page of our own is rendered inside the admin, and who may see it.

Called by the views of every app. `admin.site` is project's MillraceAdminSite, so
menu, banners and zone come without an import upwards. An app's `views.py` lists
its addresses in `urlpatterns`; the site wraps each in `admin_view`.
"""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Concatenate

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern

from audit import clock


def render(
    request: HttpRequest,
    template: str,
    *,
    title: str,
    lead: str = "",
    group: str = "",
    crumbs: tuple[tuple[str, str], ...] = (),
    status: int = 200,
    **context: object,
) -> TemplateResponse:
    """A page that extends admin/page.html.

    `lead` is the sentence under the title, `group` the menu group in the
    breadcrumbs, `crumbs` the pages above this one as (name, address).
    """
    page = {
        "title": title,
        "lead": lead,
        "group": group,
        "crumbs": crumbs,
        "now": clock.now(),
    }
    # The site's own words last: no page replaces the menu by accident.
    everything = {**page, **context, **admin.site.each_context(request)}
    request.current_app = admin.site.name
    return TemplateResponse(request, template, everything, status=status)


def platform_only[**P, R: HttpResponseBase](
    view: Callable[Concatenate[HttpRequest, P], R],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Refuse everybody who does not belong to the platform's staff, as if it were not there."""

    @wraps(view)
    def guarded(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        if tenants(request) is not None:
            raise Http404
        return view(request, *args, **kwargs)

    return guarded


def tenants(request: HttpRequest) -> frozenset[int] | None:
    """The tenants whose rows the reader may see; None: all of them.

    A request that never passed the tenant middleware sees nothing.
    """
    found: frozenset[int] | None = getattr(request, "tenants", frozenset())
    return found


def patterns(app: str) -> list[URLPattern]:
    """The addresses that the app's views.py lists, or none where it has no views.py."""
    name = f"{app}.views"
    if find_spec(name) is None:
        return []
    found: list[URLPattern] = import_module(name).urlpatterns
    return found


def require(request: HttpRequest, permission: str) -> None:
    """Refuse a reader without the permission, on the server, whatever the page shows."""
    if not request.user.has_perm(permission):
        raise PermissionDenied
