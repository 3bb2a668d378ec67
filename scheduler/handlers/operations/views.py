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
from workqueue.verbs import Verb

RESULTS = {"done": True, "skipped": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the list of operations."""

    operation: BulkOperation
    title: str
    state: str
    counts: Counts


@page.needs(ask.VIEWED["items"])
def operations(request: HttpRequest) -> HttpResponse:
    """What was asked for lately, and how far it is."""
    found = keyset.page(
        _mine(request).with_lives(),
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
                state=each.state(lives=each.lives),
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
    item = start.item_of(found)
    state = found.state(lives=item is not None)
    may_stop = _may_stop(request, found, verb)
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
        state=state,
        counts=counts,
        left=total - counts.taken,
        total=total,
        taken_share=f"{100 * counts.taken / total:.1f}",
        done_share=f"{100 * counts.done / total:.1f}",
        chips=matching.chips(found),
        list_address=f"{reverse(ask.LISTS[found.of])}?{found.query}",
        item=item,
        why=waiting.why(item, waiting.facts(now)) if item else "",
        may_stop=may_stop,
        may_go_on=may_stop and state == "interrupted",
        page=rows,
        rows=[(row, registry.title(row.handler)) for row in rows.rows],
        show=show if show in RESULTS else "",
    )


@page.needs(ask.VIEWED["items"], methods=page.ASKS)
def stop(request: HttpRequest, id: int) -> HttpResponse:
    """Ask why; then leave the rest of the rows alone."""
    found = _one(request, id)
    if not _may_stop(request, found, matching.verb_of(found.of, found.verb)):
        if found.finished_at or found.stopped_by:
            messages.info(request, "This operation is over, or stops already.")
            return redirect("admin:operation", found.pk)
        raise PermissionDenied
    lives = start.item_of(found) is not None
    ends = "It ends within a page of 100 rows." if lives else "It is over at once."
    why = _reason(
        request,
        found,
        title=f"Stop operation {found.pk}?",
        says=f"The rows that are done stay done; those that are left are not touched. {ends}",
        button="Stop it",
        keep="Let it run" if lives else "",
    )
    if isinstance(why, HttpResponse):
        return why
    start.stop(found, who=request.user.get_username(), origin="admin", why=why)
    said = "It stops within a page of 100 rows" if lives else "It is over"
    messages.success(request, f"{said}; what is done stays.")
    return redirect("admin:operation", found.pk)


@page.needs(ask.VIEWED["items"], "workqueue.bulk_items", methods=page.ASKS)
def go_on(request: HttpRequest, id: int) -> HttpResponse:
    """Ask why; then let a worker take the rows that an interrupted operation left."""
    found = _one(request, id)
    verb = matching.verb_of(found.of, found.verb)
    if verb is None or not access.may(request, verb.permission, found.tenant_id):
        raise PermissionDenied
    if found.state(lives=start.item_of(found) is not None) != "interrupted":
        messages.info(request, "Nothing was done: this operation is not interrupted.")
        return redirect("admin:operation", found.pk)
    left = max(min(found.expected, found.at_most) - found.results.count(), 0)
    why = _reason(
        request,
        found,
        title=f"Go on with operation {found.pk}?",
        says=f"{verb.consequence} {words.plural(left, 'row is', 'rows are')} left of those that"
        f" matched on {words.exact(found.asked_at)}.",
        button="Go on",
        keep="",
    )
    if isinstance(why, HttpResponse):
        return why
    if start.go_on(found, who=request.user.get_username(), origin="admin", why=why):
        messages.success(request, "It goes on where it was interrupted.")
    else:
        messages.info(request, "Nothing was done: somebody else was first.")
    return redirect("admin:operation", found.pk)


def _reason(
    request: HttpRequest, found: BulkOperation, *, title: str, **more: Any
) -> str | HttpResponse:
    """Why, as it was given; or the page that asks."""
    why = " ".join(request.POST.get("why", "").split())
    problem = verbs.reason_problem(why) if request.method == "POST" else ""
    if request.method == "POST" and not problem:
        return why
    return page.render(
        request,
        "operations/reason.html",
        title=title,
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
        **more,
    )


urlpatterns = [
    path("operations/", operations, name="operations"),
    path("operations/begin/", ask.begin, name="operation_begin"),
    path("operations/<int:id>/", operation, name="operation"),
    path("operations/<int:id>/stop/", stop, name="operation_stop"),
    path("operations/<int:id>/go-on/", go_on, name="operation_go_on"),
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
