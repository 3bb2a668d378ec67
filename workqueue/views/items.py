"""items: what waits, executes or is held now, why, and what an operator does about it."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from audit import clock, keyset, page, queries, timeline, words
from audit.filters import CURSORS
from audit.views import Tab, list_context, scoped
from workqueue import access, depth, names, registry, verbs, waiting
from workqueue.filters import ItemFilters
from workqueue.models import WorkItem
from workqueue.operate import Result
from workqueue.tables import ItemLine, ItemTable
from workqueue.verbs import VERBS, Verb

AT_MOST = 200  # items of one action; a page has 50
SUGGESTED = 200  # tenants offered beside the filter's field


@page.needs("workqueue.view_workitem")
def items(request: HttpRequest) -> HttpResponse:
    """The list."""
    scope, now = page.tenants(request), clock.now()
    mine = scoped(WorkItem.objects.all(), scope)
    filters = ItemFilters(request.GET, queryset=mine)
    older, newer = request.GET.get("older", ""), request.GET.get("newer", "")
    # Newest first is by key: an index on the time would cost every enqueue and finish.
    found = keyset.page(
        filters.qs, time="enqueued_at", older=older, newer=newer, by_key=True
    )
    table = ItemTable(_lines(request, found.rows), now=now)
    return page.render(
        request,
        "workqueue/items.html",
        title="Items",
        group="Queue",
        lead="What waits, executes or is held now. A finished item leaves this list and stands under Scheduler Audit Logs.",
        tabs=_tabs(request, mine),
        verbs=[
            verb
            for verb in VERBS.values()
            if access.may_somewhere(request, verb.permission)
        ],
        actable=any(row.actable for row in table.data),
        suggestions={
            "handlers": names.titles(),
            "tenants": names.tenants(scope, limit=SUGGESTED),
        },
        **list_context(request, filters, found, table=table, one="item"),
    )


@page.needs("workqueue.view_workitem")
def item(request: HttpRequest, item_id: int) -> HttpResponse:
    """One item: where it stands, its rules, its attempts."""
    found = scoped(WorkItem.objects.filter(pk=item_id), page.tenants(request)).first()
    if found is None:
        return _gone(request, item_id)
    now = clock.now()
    attempts = [timeline.of_run(run) for run in queries.attempts(found.pk)]
    return page.render(
        request,
        "workqueue/item.html",
        title=words.shown(f"{registry.title(found.handler)}, {found.tenant_slug}"),
        group="Queue",
        crumbs=(("Items", reverse("admin:items")),),
        now=now,
        item=found,
        handler_title=registry.title(found.handler),
        why=waiting.why(found, waiting.facts(now)),
        verbs=[
            verb
            for verb in VERBS.values()
            if _fits(verb, found, now=now)
            and access.may(request, verb.permission, found.tenant_id)
        ],
        attempts=attempts,
        cut=len(attempts) == queries.ATTEMPTS,
        limit=timedelta(seconds=found.time_limit_s),
        abandon_words=timeline.ABANDON.get(found.abandon, found.abandon),
    )


@page.needs("workqueue.view_workitem", methods=page.ASKS)
def act(request: HttpRequest) -> HttpResponse:
    """Ask, with what it will do; then, by POST with a reason, do it row by row."""
    asked = request.POST if request.method == "POST" else request.GET
    verb = VERBS.get(asked.get("verb", ""))
    ids = [
        int(text)
        for text in asked.getlist("item")
        if text.isascii() and text.isdigit() and len(text) < 19
    ]
    if verb is None:
        raise Http404
    if not ids:
        messages.info(request, "No item was selected: nothing was done.")
        return redirect("admin:items")
    chosen = list(
        scoped(
            WorkItem.objects.filter(pk__in=ids[:AT_MOST]), page.tenants(request)
        ).order_by("pk")
    )
    if not access.may_somewhere(request, verb.permission):
        raise PermissionDenied
    access.require(request, verb.permission, {each.tenant_id for each in chosen})
    why = " ".join(asked.get("why", "").split())
    problem = verbs.reason_problem(why) if request.method == "POST" else ""
    if request.method != "POST" or problem or not chosen:
        return _ask(request, verb, chosen, why=why, problem=problem)
    results = verb.run(
        [each.pk for each in chosen],
        who=request.user.get_username(),
        origin="admin",
        why=why,
        tenants=page.tenants(request),
    )
    return _tell(request, verb, chosen, results)


def _ask(
    request: HttpRequest, verb: Verb, chosen: list[WorkItem], *, why: str, problem: str
) -> HttpResponse:
    if not chosen:
        messages.info(
            request,
            "The selected items are no longer in the queue: they have run, or somebody else ended them.",
        )
        return redirect("admin:items")
    what = "this item" if len(chosen) == 1 else f"{len(chosen):,} items"
    return page.render(
        request,
        "workqueue/act.html",
        title=verb.question.format(what=what),
        group="Queue",
        crumbs=(("Items", reverse("admin:items")),),
        status=400 if problem else 200,
        quiet=True,
        verb=verb,
        button=verb.button.format(what=what),
        keep=verb.keep,
        danger=verb.danger,
        lines=_lines(request, chosen),
        unfit=sum(each.status not in verb.states for each in chosen),
        why=why,
        problem=problem,
    )


def _tell(
    request: HttpRequest, verb: Verb, chosen: list[WorkItem], results: list[Result]
) -> HttpResponse:
    done = sum(result.done for result in results)
    if done == len(results):
        messages.success(request, verb.done.format(count=words.plural(done, "item")))
        return redirect("admin:items")
    known = {each.pk: each for each in chosen}
    rows = [
        (item := known[int(result.target)], registry.title(item.handler), result)
        for result in results
    ]
    return page.render(
        request,
        "workqueue/acted.html",
        title=f"{words.number(done)} of {words.plural(len(results), 'item')} done",
        group="Queue",
        crumbs=(("Items", reverse("admin:items")),),
        rows=rows,
    )


def _fits(verb: Verb, item: WorkItem, *, now: datetime) -> bool:
    """Whether it would not be refused for the item's state."""
    put_off = verb is not VERBS["retry"] or item.not_before > now
    return item.status in verb.states and put_off


def _gone(request: HttpRequest, item_id: int) -> HttpResponse:
    """An item that has ended: its newest run is what was meant."""
    runs = [
        run for run in queries.attempts(item_id) if access.sees(request, run.tenant_id)
    ]
    if not runs:
        raise Http404
    return redirect("admin:run", runs[-1].id)


def _tabs(request: HttpRequest, mine: Any) -> list[Tab]:
    """All, and by state with their counts."""
    asked = QueryDict(mutable=True)
    for name, values in request.GET.lists():
        if name not in CURSORS and any(values):
            asked.setlist(name, [value for value in values if value])
    tabs = [Tab(name="All", address="?", current=not asked)]
    counts = depth.read(depth.by_status(mine))
    for status in WorkItem.Status:
        query = f"status={status}"
        tabs.append(
            Tab(
                name=f"{status.label} {depth.shown(counts[status])}",
                address=f"?{query}",
                current=asked == QueryDict(query),
            )
        )
    return tabs


def _lines(request: HttpRequest, rows: Any) -> list[ItemLine]:
    facts = waiting.facts(clock.now()) if rows else None
    return [
        ItemLine(
            item=each,
            title=registry.title(each.handler),
            why=waiting.why(each, facts) if facts else "",
            actable=any(
                access.may(request, verb.permission, each.tenant_id)
                for verb in VERBS.values()
            ),
        )
        for each in rows
    ]
