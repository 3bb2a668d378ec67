"""page: how a page of our own is rendered inside the admin, and who may see it.

Called by the views of every app. `admin.site` is project's MillraceAdminSite, so
menu, banners and zone come without an import upwards. An app's `views.py` lists
its addresses in `urlpatterns`; the site wraps each in `admin_view`. Every view begins
with `@page.needs(...)`, which says who may open it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Concatenate

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseNotAllowed
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
    live: bool = False,
    status: int = 200,
    **context: object,
) -> TemplateResponse:
    """A page that extends admin/page.html.

    `lead` is the sentence under the title, `group` the menu group in the
    breadcrumbs, `crumbs` the pages above this one as (name, address). `live`: the
    page refreshes itself while it is looked at.
    """
    page = {
        "title": title,
        "lead": lead,
        "group": group,
        "crumbs": crumbs,
        "live": live,
        "now": context.get("now") or clock.now(),
    }
    # The site's own words after the page's: none replaces the menu by accident.
    everything = {**context, **admin.site.each_context(request), **page}
    request.current_app = admin.site.name
    return TemplateResponse(request, template, everything, status=status)


READS = ("GET", "HEAD")
ASKS = (*READS, "POST")  # GET says what will happen and asks why, POST does it
DOES = ("POST",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Who may open a page."""

    permissions: tuple[str, ...]  # "audit.view_run"; all of them
    platform: bool  # for the platform's staff only

    def opens(self, request: HttpRequest) -> bool:
        """Whether this reader may."""
        if self.platform and tenants(request) is not None:
            return False
        return request.user.has_perms(self.permissions)


def needs[**P, R: HttpResponseBase](
    *permissions: str, platform: bool = False, methods: tuple[str, ...] = READS
) -> Callable[
    [Callable[Concatenate[HttpRequest, P], R]],
    Callable[Concatenate[HttpRequest, P], HttpResponseBase],
]:
    """Let a view be opened only by those who hold the permissions.

        @page.needs("audit.view_run")
        def runs(request): ...

        @page.needs("workqueue.view_setting", "workqueue.edit_caps", platform=True, methods=page.ASKS)
        def restore(request, slug, version): ...

    Other methods are 405. A page of the platform does not exist for a tenant's staff
    (404); a reader without the permission is refused (403). Menu and links ask the same
    guard (`opens`), so that none leads to a page that refuses. What stays with the view
    is the tenant: rows come from `scoped(queryset, page.tenants(request))`, so that
    another tenant's id is 404; and what changes one row is asked for with its tenant:
    `access.require(request, "workqueue.cancel_item", [row.tenant_id])`.
    """

    def guarded_by(
        view: Callable[Concatenate[HttpRequest, P], R],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        guard = Guard(permissions=permissions, platform=platform)

        @wraps(view)
        def guarded(
            request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            if platform and tenants(request) is not None:
                raise Http404
            if not guard.opens(request):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        guarded.guard = guard  # type: ignore[attr-defined]
        return guarded

    return guarded_by


def guard_of(view: object) -> Guard | None:
    """Who may open the view; None: it does not say."""
    found: Guard | None = getattr(view, "guard", None)
    return found


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
