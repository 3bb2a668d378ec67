"""views: Scheduler Audit Logs and Changes, and the parts of a run's page.

The page of a run itself is served by `workqueue.views`, which knows whether the
attempt still lives; what both kinds show stands here. Everything is limited to the
reader's tenants by id.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import path, reverse

from audit import clock, export, keyset, metrics_page, page, queries, saved, sorting
from audit.filters import ChangeFilters, Filters, RunFilters
from audit.models import Change, Run
from audit.names import names
from audit.tables import ChangeTable, RunLine, RunTable, Table

SUGGESTED = 200  # tenants offered beside the filter's field; any other can be typed
LONGER_MS = 2000  # milliseconds that a search sifts rows when its reader asks for more
FAILURES = "outcome=partial&outcome=failed&outcome=abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A ready-made or saved view of a list."""

    name: str
    address: str
    current: bool
    saved_id: int | None = None  # of a view that the reader may remove


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """One of the ledger's lists: what its page, its file and its views have in common."""

    name: str  # of the page
    permission: str
    filters: type[Filters]
    rows: QuerySet[Any]
    file: export.Export
    ready_made: tuple[tuple[str, str], ...] = ()
    sorts: tuple[str, ...] = ()  # parameters besides the filters

    def asked(self, request: HttpRequest) -> Filters:
        """The rows that this reader may see, and what was asked of them."""
        mine = scoped(self.rows.all(), page.tenants(request))
        return self.filters(request.GET, queryset=mine)

    @property
    def parameters(self) -> tuple[str, ...]:
        """What a query string may hold."""
        return (*self.filters.base_filters, *self.sorts)


RUNS = List(
    name="runs",
    permission="audit.view_run",
    filters=RunFilters,
    rows=Run.objects.filter(kind=Run.Kind.ITEM),
    file=export.RUNS,
    ready_made=(
        ("All runs", ""),
        ("Failures", FAILURES),
        ("Ran over 30 s", "ran_over=30+s"),
    ),
    sorts=("sort",),
)
JOB_LOGS = List(
    name="job_logs",
    permission="audit.view_run",
    filters=RunFilters,
    rows=Run.objects.filter(kind=Run.Kind.JOB),
    file=export.JOB_LOGS,
    ready_made=(
        ("All ended jobs", ""),
        ("Failures", FAILURES),
        ("Ran over 30 min", "ran_over=30+min"),
    ),
    sorts=("sort",),
)
CHANGES = List(
    name="changes",
    permission="audit.view_change",
    filters=ChangeFilters,
    rows=Change.objects.all(),
    file=export.CHANGES,
    ready_made=(("All changes", ""), ("Of the last 24 h", "since=24+h")),
)


@page.needs("audit.view_run")
def runs(request: HttpRequest) -> HttpResponse:
    """Scheduler Audit Logs: one row for every started run of an item."""
    return _runs(request, RUNS, "audit/runs.html", title="Scheduler Audit Logs")


@page.needs("audit.view_run")
def job_logs(request: HttpRequest) -> HttpResponse:
    """Job Logs: one row for every long job that ended."""
    return _runs(request, JOB_LOGS, "audit/job_logs.html", title="Job Logs")


def _runs(request: HttpRequest, of: List, template: str, *, title: str) -> HttpResponse:
    filters = of.asked(request)
    filters.queryset = filters.queryset.defer("transcript", "details")
    scope, now = page.tenants(request), clock.now()
    sort = sorting.of(request.GET.get("sort", ""))
    edge = None
    try:
        rows, edge = sorting.within(filters.walked, sort)
        found = page_of(request, rows, filters, time=sort.by, ascending=sort.ascending)
    except keyset.TooSlow:
        found = keyset.Page(slow=True)
    around = list_context(
        request,
        filters,
        found,
        table=RunTable(_lines(found.rows), now=now, sort=sort, address=filters.at),
        one="job" if of is JOB_LOGS else "run",
        time="finished_at",
    )
    return page.render(
        request,
        template,
        title=title,
        group="Audit",
        onward=around["newer" if found.ascending else "older"],
        back=around["older" if found.ascending else "newer"],
        sort=sort,
        sorts=sorting.SORTS.values(),
        edge=edge,
        before_edge=edge and filters.at(until=edge.isoformat()),
        looked=sorting.LOOKED,
        suggestions={
            "handlers": names().titles(),
            "tenants": names().tenants(scope, limit=SUGGESTED),
        },
        nearest=None if found.rows else _newest(filters.queryset),
        **own_context(request, of),
        **around,
    )


@page.needs("audit.view_change")
def changes(request: HttpRequest) -> HttpResponse:
    """Changes: what operators did, who, when, old, new, why, from where."""
    filters = CHANGES.asked(request)
    found = page_of(request, filters.walked, filters, time="at")
    return page.render(
        request,
        "audit/changes.html",
        title="Changes",
        group="Audit",
        lead="What operators changed, newest first. Nothing here can be edited or deleted.",
        **own_context(request, CHANGES),
        **list_context(
            request,
            filters,
            found,
            table=ChangeTable(found.rows, now=clock.now()),
            one="change",
            time="at",
        ),
    )


def downloads(of: List) -> Callable[..., HttpResponseBase]:
    """The address of all rows of a list that match, as a file."""

    @page.needs(of.permission, "audit.export")
    def download(request: HttpRequest, form: str) -> HttpResponseBase:
        if form not in export.TYPES:
            raise Http404
        filters = of.asked(request)
        if filters.errors:  # the list says which; a file of everything would not
            return redirect(f"{reverse(f'admin:{of.name}')}?{request.GET.urlencode()}")
        return export.response(of.file, filters, form=form)

    return download


def saves(of: List) -> Callable[..., HttpResponseBase]:
    """Keep what was asked of a list under a name."""

    @page.needs(of.permission, methods=page.DOES)
    def save_view(request: HttpRequest) -> HttpResponse:
        query = request.POST.get("query", "")
        try:
            view = saved.save(
                request.user.pk or 0,
                page=of.name,
                name=request.POST.get("name", ""),
                query=query,
                allowed=of.parameters,
            )
        except saved.Refused as problem:
            messages.error(request, str(problem))
            kept = saved.narrowed(QueryDict(query[:10_000]), of.parameters)
            return redirect(f"{reverse(f'admin:{of.name}')}?{kept.urlencode()}")
        messages.success(request, f"The view “{view.name}” is saved.")
        return redirect(f"{reverse(f'admin:{of.name}')}?{view.query}")

    return save_view


def removes(of: List) -> Callable[..., HttpResponseBase]:
    """Forget a view of the reader's own."""

    @page.needs(of.permission, methods=page.DOES)
    def remove_view(request: HttpRequest, view_id: int) -> HttpResponse:
        if not saved.remove(request.user.pk or 0, view_id=view_id):
            raise Http404
        messages.success(
            request, "The view is removed; the rows that it showed are not."
        )
        return redirect(f"admin:{of.name}")

    return remove_view


def scoped(queryset: QuerySet[Any], tenants: frozenset[int] | None) -> QuerySet[Any]:
    """The rows of the reader's tenants; None: all rows."""
    if tenants is None:
        return queryset
    # Equality lets the index of one tenant give the order too.
    return (
        queryset.filter(tenant_id=next(iter(tenants)))
        if len(tenants) == 1
        else queryset.filter(tenant_id__in=tenants)
    )


urlpatterns = [
    path("audit/runs/", runs, name="runs"),
    path("audit/job_logs/", job_logs, name="job_logs"),
    path("audit/changes/", changes, name="changes"),
    *(
        address
        for of in (RUNS, JOB_LOGS, CHANGES)
        for address in (
            path(
                f"audit/{of.name}/export/<slug:form>/",
                downloads(of),
                name=f"{of.name}_export",
            ),
            path(f"audit/{of.name}/views/", saves(of), name=f"{of.name}_save_view"),
            path(
                f"audit/{of.name}/views/<int:view_id>/remove/",
                removes(of),
                name=f"{of.name}_remove_view",
            ),
        )
    ),
    path("audit/metrics/", metrics_page.metrics, name="metrics"),
]


def list_context(
    request: HttpRequest,
    filters: Filters,
    found: keyset.Page[Any],
    *,
    table: Table,
    one: str,
    time: str = "",
) -> dict[str, Any]:
    """What every list shows around its table. `time`: what an index has the rows in the order of."""
    chips = filters.chips
    return {
        "filters": filters,
        "last_chip": chips[-1] if chips else None,
        "rows": found.rows,
        "table_html": table.as_html(request),
        "slow": found.slow,
        # The newest page refreshes itself; what is being read further down stays.
        "live": not found.newer and "older" not in request.GET,
        "matches": ""
        if found.slow
        else keyset.matches(_total(filters, found, time), one),
        "first_at": found.first_at,
        "last_at": found.last_at,
        "newest": filters.without(""),
        "matching": filters.without("").replace("?", "&", 1),
        "older": found.older and filters.at(older=found.older),
        "newer": found.newer and filters.at(newer=found.newer),
        "searched_to": found.searched_to,
        "further": filters.at(
            **({"newer": found.newer} if found.ascending else {"older": found.older}),
            longer="1",
        ),
    }


def _total(filters: Filters, found: keyset.Page[Any], time: str) -> keyset.Total | None:
    if not found.older and not found.newer:  # the page is all there is
        return keyset.Total(found=len(found.rows))
    if found.searched_to:  # a count would not get as far
        return keyset.Total(found=len(found.rows), more=True)
    return keyset.count(filters.walked, sieve=filters.sieve, time=time)


def page_of(
    request: HttpRequest,
    rows: QuerySet[Any],
    filters: Filters,
    *,
    time: str,
    ascending: bool = False,
) -> keyset.Page[Any]:
    return keyset.page(
        rows,
        time=time,
        older=request.GET.get("older", ""),
        newer=request.GET.get("newer", ""),
        sieve=filters.sieve,
        sift_ms=LONGER_MS if "longer" in request.GET else keyset.SIFT_MS,
        ascending=ascending,
    )


def _newest(mine: QuerySet[Run]) -> Run | None:
    try:
        with keyset.patience(keyset.COUNT_MS):
            return mine.order_by("-finished_at", "-pk").first()
    except keyset.TooSlow:
        return None


def own_context(request: HttpRequest, of: List) -> dict[str, Any]:
    """What the ledger's own lists have besides: views and files."""
    asked = saved.narrowed(request.GET, of.parameters)
    tabs = [
        Tab(name=name, address=f"?{query}", current=asked == QueryDict(query))
        for name, query in of.ready_made
    ]
    kept = saved.of(request.user.pk or 0, page=of.name)
    tabs += [
        Tab(
            name=view.name,
            address=f"?{view.query}",
            current=asked == QueryDict(view.query),
            saved_id=view.pk,
        )
        for view in kept
    ]
    return {
        "list": of.name,
        "tabs": tabs,
        "current_view": next((tab for tab in tabs if tab.current), None),
        "query": asked.urlencode(),
        "save_address": reverse(f"admin:{of.name}_save_view"),
        "remove_name": f"admin:{of.name}_remove_view",
        "files": {
            form: reverse(f"admin:{of.name}_export", args=[form])
            for form in export.TYPES
            if request.user.has_perm("audit.export")
        },
    }


def _lines(rows: tuple[Run, ...]) -> list[RunLine]:
    """What the rows say besides: title, median, late result, a later attempt. Three queries."""
    bad = [run for run in rows if run.outcome != Run.Outcome.SUCCEEDED]
    medians = queries.medians(sorted({run.handler for run in rows}))
    lates = queries.lates([run.id for run in bad])
    later = _newest_attempts({run.item_id for run in bad if run.item_id is not None})
    return [
        RunLine(
            run=run,
            title=names().title(run.handler),
            median=medians.get(run.handler),
            late=lates.get(run.id),
            later=found
            if (found := later.get(run.item_id or 0)) and found.attempt > run.attempt
            else None,
        )
        for run in rows
    ]


def _newest_attempts(item_ids: set[int]) -> dict[int, Run]:
    """The last attempt that ended of each item, where it was not the first."""
    rows = Run.objects.filter(item_id__in=sorted(item_ids), attempt__gt=1).order_by(
        "attempt", "finished_at"
    )
    shown = rows.only("id", "item_id", "attempt", "outcome", "finished_at")
    return {run.item_id: run for run in shown if run.item_id is not None}
