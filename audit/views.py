"""views: Scheduler Audit Logs and Changes, and the parts of a run's page.

The page of a run itself is served by `workqueue.views`, which knows whether the
attempt still lives; what both kinds show stands here. Everything is limited to the
reader's tenants by id.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import path

from audit import clock, keyset, page, queries
from audit.filters import CURSORS, ChangeFilters, Filters, RunFilters
from audit.models import Change, Run
from audit.names import names
from audit.tables import ChangeTable, RunLine, RunTable, Table

SUGGESTED = 200  # tenants offered beside the filter's field; any other can be typed
FAILURES = "outcome=partial&outcome=failed&outcome=abandoned"
READY_MADE = (
    ("All runs", ""),
    ("Failures", FAILURES),
    ("Ran over 30 s", "ran_over=30+s"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A ready-made view of a list."""

    name: str
    address: str
    current: bool


@page.needs("audit.view_run")
def runs(request: HttpRequest) -> HttpResponse:
    """Scheduler Audit Logs: one row for every started run."""
    scope = page.tenants(request)
    mine = scoped(
        Run.objects.filter(kind=Run.Kind.ITEM).defer("transcript", "details"), scope
    )
    filters = RunFilters(request.GET, queryset=mine)
    found = _page(filters, request, time="finished_at")
    now = clock.now()
    return page.render(
        request,
        "audit/runs.html",
        title="Scheduler Audit Logs",
        group="Audit",
        tabs=_tabs(request),
        suggestions={
            "handlers": names().titles(),
            "tenants": names().tenants(scope, limit=SUGGESTED),
        },
        nearest=None if found.rows else mine.order_by("-finished_at", "-pk").first(),
        **list_context(
            request,
            filters,
            found,
            table=RunTable(_lines(found.rows), now=now),
            one="run",
        ),
    )


@page.needs("audit.view_change")
def changes(request: HttpRequest) -> HttpResponse:
    """Changes: what operators did, who, when, old, new, why, from where."""
    mine = scoped(Change.objects.all(), page.tenants(request))
    filters = ChangeFilters(request.GET, queryset=mine)
    found = _page(filters, request, time="at")
    return page.render(
        request,
        "audit/changes.html",
        title="Changes",
        group="Audit",
        lead="What operators changed, newest first. Nothing here can be edited or deleted.",
        **list_context(
            request,
            filters,
            found,
            table=ChangeTable(found.rows, now=clock.now()),
            one="change",
        ),
    )


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
    path("audit/changes/", changes, name="changes"),
]


def _page(filters: Filters, request: HttpRequest, *, time: str) -> keyset.Page[Any]:
    older, newer = request.GET.get("older", ""), request.GET.get("newer", "")
    return keyset.page(filters.qs, time=time, older=older, newer=newer)


def list_context(
    request: HttpRequest,
    filters: Filters,
    found: keyset.Page[Any],
    *,
    table: Table,
    one: str,
) -> dict[str, Any]:
    """What every list shows around its table."""
    chips = filters.chips
    return {
        "filters": filters,
        "last_chip": chips[-1] if chips else None,
        "rows": found.rows,
        "table_html": table.as_html(request),
        "slow": found.slow,
        # The newest page refreshes itself; what is being read further down stays.
        "live": not found.newer,
        "matches": "" if found.slow else keyset.matches(keyset.count(filters.qs), one),
        "first_at": found.first_at,
        "last_at": found.last_at,
        "newest": filters.without(""),
        "older": found.older and filters.at(older=found.older),
        "newer": found.newer and filters.at(newer=found.newer),
    }


def _tabs(request: HttpRequest) -> list[Tab]:
    asked = QueryDict(mutable=True)
    for name, values in request.GET.lists():
        if name not in CURSORS and any(values):
            asked.setlist(name, [value for value in values if value])
    return [
        Tab(name=name, address=f"?{query}", current=asked == QueryDict(query))
        for name, query in READY_MADE
    ]


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
