"""admin_site: the admin as operators know it: the menu in groups, banners, the overview.

Lower apps never import this. They list their pages in `urlpatterns` of their
views.py; the menu below says in which group operators look for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, URLResolver, reverse

from audit import clock, page
from project import banners, overview
from project.login import LoginForm

# Apps whose views.py has pages of its own, from the top.
PAGES = ("scheduler", "workqueue", "audit")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the menu."""

    title: str
    target: str  # name of a page, or "app.Model" of a model with an admin
    permission: str = (
        ""  # without it the entry is left out; a model's admin has its own
    )
    platform: bool = False  # only members of the platform tenant see it


# An entry whose page does not exist (yet) is left out.
ABOVE: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Global Settings",
        (
            Entry("Settings", "settings", "workqueue.view_setting", platform=True),
            Entry("Job Worker", "job_worker", platform=True),
            Entry("Seed Data", "seed_data", platform=True),
        ),
    ),
    (
        "Audit",
        (
            Entry("Scheduler Audit Logs", "runs", "audit.view_run"),
            Entry("Server Audit Logs", "nodes", "workqueue.view_node", platform=True),
            Entry("Ticks", "ticks", "scheduler.view_tick", platform=True),
            Entry("Job Logs", "job_logs"),
            Entry("Changes", "changes", "audit.view_change"),
        ),
    ),
    (
        "Queue",
        (
            Entry("Items", "items", "workqueue.view_workitem"),
            Entry("Jobs", "jobs"),
            Entry("Timetable", "timetable", "scheduler.view_schedule", platform=True),
            Entry("Pauses", "pauses", "workqueue.view_pause"),
        ),
    ),
)
# Between these stand the domains, one group per app of settings.DOMAIN_APPS.
BELOW: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Tenants",
        (
            Entry("Tenants", "workqueue.Tenant"),
            Entry("Memberships", "workqueue.Membership"),
        ),
    ),
    ("People", (Entry("Users", "auth.User"), Entry("Groups", "auth.Group"))),
)


class MillraceAdminSite(admin.AdminSite):
    """The one admin site of an installation."""

    site_header = "Millrace"
    site_title = "Millrace"
    index_title = "Operations"
    site_url = None
    login_form = LoginForm

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """The overview: is work moving?"""
        now = clock.now()
        found = {**overview.context(request, now=now), **(extra_context or {})}
        return page.render(
            request,
            "admin/index.html",
            **{"title": "Operations", "live": True, "now": now, **found},
        )

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What every page shows."""
        more: dict[str, Any] = {
            "environment": settings.DJANGO_ENV,
            "zone": settings.TIME_ZONE,
        }
        if self.has_permission(request):
            more["banners"] = banners.of(request)
        return {**super().each_context(request), **more}

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """The pages of our own before the stock ones."""
        return [*self._pages(), *super().get_urls()]

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """The menu, in the groups where operators look. `app_label` is the stock signature's."""
        models = self._models(request)
        groups = [*ABOVE, *self._domains(models), *BELOW]
        menu = [self._group(request, name, entries, models) for name, entries in groups]
        return [group for group in menu if group["models"]]

    def app_index(  # type: ignore[override]
        self,
        request: HttpRequest,
        app_label: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Apps are not what operators look for: the overview has every page."""
        return redirect("admin:index")

    def _pages(self) -> Iterator[URLPattern]:
        for app in PAGES:
            for pattern in page.patterns(app):
                view = self.admin_view(pattern.callback)
                yield URLPattern(
                    pattern.pattern, view, pattern.default_args, pattern.name
                )

    def _models(self, request: HttpRequest) -> dict[str, dict[str, Any]]:
        """Every model this reader may see, as the stock menu describes it, by label."""
        return {
            f"{label}.{model['object_name']}": model
            for label, app in self._build_app_dict(request).items()
            for model in app["models"]
        }

    def _domains(
        self, models: dict[str, dict[str, Any]]
    ) -> Iterator[tuple[str, tuple[Entry, ...]]]:
        for name in settings.DOMAIN_APPS:
            config = apps.get_app_config(name.rpartition(".")[2])
            labels = [
                label for label in models if label.partition(".")[0] == config.label
            ]
            yield (
                str(config.verbose_name),
                tuple(Entry(str(models[label]["name"]), label) for label in labels),
            )

    def _group(
        self,
        request: HttpRequest,
        name: str,
        entries: tuple[Entry, ...],
        models: dict[str, dict[str, Any]],
    ) -> dict[str, Any]:
        """A group in the form that the admin's own templates read."""
        lines = []
        everywhere = page.tenants(request) is None
        for entry in entries:
            if entry.platform and not everywhere:
                continue
            if entry.permission and not request.user.has_perm(entry.permission):
                continue
            if (address := self._address(entry, models)) is None:
                continue
            lines.append(
                {
                    "name": entry.title,
                    "object_name": entry.target.replace(".", ""),
                    "admin_url": address,
                    "current": request.path.startswith(address),
                }
            )
        return {
            "name": name,
            "app_label": name.lower().replace(" ", "-"),
            "models": lines,
        }

    def _address(self, entry: Entry, models: dict[str, dict[str, Any]]) -> str | None:
        if "." in entry.target:
            address: str | None = models.get(entry.target, {}).get("admin_url")
            return address
        try:
            return reverse(f"{self.name}:{entry.target}")
        except NoReverseMatch:
            return None
