"""views: the operations that were asked for (ask.py), how far they are, and their end.

Limited to the reader's tenants by id; what belongs to the platform is for those who
see all tenants.
"""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from audit import clock, keyset, page, words
from audit.views import scoped
from scheduler.handlers.operations import ask, matching, start
from scheduler.handlers.operations.models import BulkOperation, BulkResult, Counts
from workqueue import access, registry, verbs, waiting
from workqueue.models import WorkItem
from workqueue.verbs import Verb

RESULTS = {"done": True, "skipped": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the list of operations."""

    operation: BulkOperation
    title: str
    counts: Counts


@page.needs(ask.VIEWED["items"])
def operations(request: HttpRequest) -> HttpResponse:
    """What was asked for lately, and how far it is."""
    found = keyset.page(
        _mine(request),
        time="asked_at",
        older=request.GET.get("older", ""),
        newer=request.GET.get("newer", ""),
    )
    counts = BulkResult.objects.counts(found.rows)
    return page.render(
        request,
        "operations/list.html",
        title="Bulk operations",
        group="Queue",
        lead="What operators did to many items or runs at once, and what became of each row. Kept for 90 days.",
        live=not found.newer,
        lines=[
            Line(
                operation=each,
                title=title_of(each),
                counts=counts.get(each.pk, Counts()),
            )
            for each in found.rows
        ],
        page=found,
    )


@page.needs(ask.VIEWED["items"])
def operation(request: HttpRequest, id: int) -> HttpResponse:
    """How far it is, why it waits, and what became of every row."""
    found = _one(request, id)
    now = clock.now()
    counts = BulkResult.objects.counts([found]).get(found.pk, Counts())
    show = request.GET.get("show", "")
    results = found.results.all()
    if show in RESULTS:
        results = results.filter(done=RESULTS[show])
    older, newer = request.GET.get("older", ""), request.GET.get("newer", "")
    rows = keyset.page(results, time="at", older=older, newer=newer)
    verb = matching.verb_of(found.of, found.verb)
    item = _item(found)
    total = max(min(found.expected, found.at_most), counts.taken, 1)
    return page.render(
        request,
        "operations/operation.html",
        title=title_of(found),
        group="Queue",
        crumbs=(("Bulk operations", reverse("admin:operations")),),
        live=not rows.newer,
        now=now,
        operation=found,
        counts=counts,
        left=total - counts.taken,
        total=total,
        taken_share=f"{100 * counts.taken / total:.1f}",
        done_share=f"{100 * counts.done / total:.1f}",
        chips=matching.chips(found),
        list_address=f"{reverse(ask.LISTS[found.of])}?{found.query}",
        item=item,
        why=waiting.why(item, waiting.facts(now)) if item else "",
        may_stop=_may_stop(request, found, verb),
        page=rows,
        rows=[(row, registry.title(row.handler)) for row in rows.rows],
        show=show if show in RESULTS else "",
    )


@page.needs(ask.VIEWED["items"], methods=page.ASKS)
def stop(request: HttpRequest, id: int) -> HttpResponse:
    """Ask why; then leave the rest of the rows alone."""
    found = _one(request, id)
    verb = matching.verb_of(found.of, found.verb)
    if not _may_stop(request, found, verb):
        if found.finished_at or found.stopped_by:
            messages.info(request, "This operation is over, or stops already.")
            return redirect("admin:operation", found.pk)
        raise PermissionDenied
    why = " ".join(request.POST.get("why", "").split())
    problem = verbs.reason_problem(why) if request.method == "POST" else ""
    if request.method != "POST" or problem:
        return page.render(
            request,
            "operations/stop.html",
            title=f"Stop operation {found.pk}?",
            group="Queue",
            crumbs=(
                ("Bulk operations", reverse("admin:operations")),
                (title_of(found), reverse("admin:operation", args=[found.pk])),
            ),
            status=400 if problem else 200,
            quiet=True,
            operation=found,
            why=why,
            problem=problem,
        )
    start.stop(found, who=request.user.get_username(), origin="admin", why=why)
    messages.success(request, "It stops within a page of 100 rows; what is done stays.")
    return redirect("admin:operation", found.pk)


urlpatterns = [
    path("operations/", operations, name="operations"),
    path("operations/begin/", ask.begin, name="operation_begin"),
    path("operations/<int:id>/", operation, name="operation"),
    path("operations/<int:id>/stop/", stop, name="operation_stop"),
]


def title_of(found: BulkOperation) -> str:
    """'Cancel 37 items'."""
    verb = matching.verb_of(found.of, found.verb)
    short = verb.short if verb else found.verb
    noun = verb.noun if verb else "row"
    return f"{short} {words.plural(min(found.expected, found.at_most), noun)}"


def _mine(request: HttpRequest) -> Any:
    return scoped(BulkOperation.objects.select_related("tenant"), page.tenants(request))


def _one(request: HttpRequest, id: int) -> BulkOperation:
    found: BulkOperation | None = (
        _mine(request).filter(pk=id).first() if id < 2**63 else None
    )
    if found is None:
        raise Http404
    return found


def _may_stop(request: HttpRequest, found: BulkOperation, verb: Verb | None) -> bool:
    if verb is None or found.finished_at or found.stopped_by:
        return False
    return access.may(request, verb.permission, found.tenant_id)


def _item(found: BulkOperation) -> WorkItem | None:
    items = WorkItem.objects.filter(handler=matching.KEY, tenant=found.tenant)
    return items.filter(dedup_key=str(found.pk)).first()
