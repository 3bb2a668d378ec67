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
from django.urls import URLPattern, URLResolver, reverse
from django.utils import timezone
from django.utils.functional import cached_property

from audit import clock, page, words
from project import banners, overview, reader
from project.login import LoginForm

# Apps whose views.py has pages of its own, from the top.
PAGES = (
    "project",
    "scheduler",
    "scheduler.handlers.operations",
    "jobworker",
    "workqueue",
    "audit",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the menu, shown to those for whom its page opens."""

    title: str
    target: str  # name of a page, or "app.Model" of a model with an admin
    go: str = ""  # the letter that leads there after g


# An entry whose page does not exist (yet) is left out.
ABOVE: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Global Settings",
        (
            Entry("Settings", "settings", go="s"),
            Entry("Job Worker", "job_worker", go="w"),
            Entry("Seed Data", "seed_data"),
        ),
    ),
    (
        "Audit",
        (
            Entry("Scheduler Audit Logs", "runs", go="a"),
            Entry("Server Audit Logs", "nodes", go="n"),
            Entry("Ticks", "ticks", go="k"),
            Entry("Job Logs", "job_logs", go="l"),
            Entry("Changes", "changes", go="c"),
            Entry("Metrics", "metrics", go="m"),
        ),
    ),
    (
        "Queue",
        (
            Entry("Items", "items", go="i"),
            Entry("Jobs", "jobs", go="j"),
            Entry("Timetable", "timetable", go="t"),
            Entry("Pauses", "pauses", go="p"),
            Entry("Bulk operations", "operations", go="b"),
        ),
    ),
    (
        "Deployments",
        (
            Entry("Deployments", "jobworker.Deployment"),
            Entry("Images", "jobworker.Image"),
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
    (
        "People",
        (
            Entry("Users", "auth.User"),
            Entry("Groups", "auth.Group"),
            Entry("Sign-in locks", "axes.AccessAttempt"),
        ),
    ),
)


class MillraceAdminSite(admin.AdminSite):
    """The one admin site of an installation."""

    site_header = "Millrace"
    site_title = "Millrace"
    index_title = "Operations"
    site_url = None
    empty_value_display = words.UNKNOWN
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
            "zone": timezone.get_current_timezone_name(),  # the page's
            "site_zone": settings.TIME_ZONE,
            "times": reader.offered(request),
            "reader_way": reader.way(request),
            "now": clock.now(),
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
        for entry in entries:
            if (address := self._address(request, entry, models)) is None:
                continue
            lines.append(
                {
                    "name": entry.title,
                    "object_name": entry.target.replace(".", ""),
                    "admin_url": address,
                    "current": request.path.startswith(address),
                    "go": entry.go,
                }
            )
        return {
            "name": name,
            "app_label": name.lower().replace(" ", "-"),
            "models": lines,
        }

    def _address(
        self, request: HttpRequest, entry: Entry, models: dict[str, dict[str, Any]]
    ) -> str | None:
        """Where it leads; None where there is no such page, or not for this reader."""
        if "." in entry.target:
            address: str | None = models.get(entry.target, {}).get("admin_url")
            return address
        guard = self._guards.get(entry.target)
        if guard is None or not guard.opens(request):
            return None
        return reverse(f"{self.name}:{entry.target}")

    @cached_property
    def _guards(self) -> dict[str, page.Guard]:
        """Who may open which page of our own, by its name."""
        found = {each.name: page.guard_of(each.callback) for each in self._pages()}
        return {name: guard for name, guard in found.items() if name and guard}
