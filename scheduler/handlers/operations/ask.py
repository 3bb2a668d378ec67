"""ask: the page between "all matching" and the deed: what would be done to how many, and why."""

from datetime import datetime, timedelta

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from audit import clock, keyset, page
from audit.filters import CURSORS
from scheduler.handlers.operations import dry, matching, start
from scheduler.handlers.operations.dry import DryRun
from scheduler.handlers.operations.models import BulkOperation
from workqueue import access, registry, tenancy, verbs
from workqueue.models import Tenant, WorkItem
from workqueue.verbs import Verb

VIEWED = {"items": "workqueue.view_workitem", "runs": "audit.view_run"}
LISTS = {"items": "admin:items", "runs": "admin:runs"}
OWN = {*CURSORS, "verb", "of"}  # of the query string: no filters
FRESH = timedelta(hours=1)  # a page that asks holds for so long


@page.needs("workqueue.bulk_items", methods=page.ASKS)
def begin(request: HttpRequest) -> HttpResponse:
    """Say what would be done to how many; then, by POST with a reason, have it done."""
    asked = request.POST if request.method == "POST" else request.GET
    of = asked.get("of", "")
    verb = matching.verb_of(of, asked.get("verb", ""))
    if verb is None:
        raise Http404
    if not request.user.has_perm(VIEWED[of]):
        raise PermissionDenied
    draft = _draft(request, of=of, verb=verb)
    if found := matching.problems(draft):
        messages.error(
            request, f"Nothing was done: a filter could not be read. {found[0]}"
        )
        return redirect(f"{reverse(LISTS[of])}?{draft.query}")
    try:
        seen = dry.look(draft, verb)
    except keyset.TooSlow:
        messages.error(
            request,
            "Nothing was done: no index serves this search over so many rows. Add a handler, a tenant or a time range.",
        )
        return redirect(f"{reverse(LISTS[of])}?{draft.query}")
    if not seen.count:
        messages.info(request, f"No {verb.noun} matches any more: nothing was done.")
        return redirect(f"{reverse(LISTS[of])}?{draft.query}")
    problems = (
        _problems(draft, asked.get("at_most", "")) if request.method == "POST" else {}
    )
    if request.method != "POST" or problems:
        return _ask(request, draft, verb, seen, problems=problems)
    return _started(draft, seen)


def _draft(request: HttpRequest, *, of: str, verb: Verb) -> BulkOperation:
    """What the page shows, or what was shown on the page that comes back."""
    if not access.may_somewhere(request, verb.permission):
        raise PermissionDenied
    tenants = access.operates(request)
    returned = request.POST if request.method == "POST" else {}
    query = request.GET.copy()
    for name in OWN:
        query.pop(name, None)
    at_most = returned.get("at_most", "")
    return BulkOperation(
        tenant=tenancy.platform(),
        tenants=None if tenants is None else sorted(tenants),
        verb=verb.name,
        of=of,
        query=returned.get("query", query.urlencode())[:8000],
        asked_at=_asked_at(returned.get("asked_at", "")),
        max_id=_max_id(returned.get("max_id", "")) if of == "items" else None,
        at_most=int(at_most) if _is_number(at_most) else dry.LIMIT,
        who=request.user.get_username(),
        why=" ".join(returned.get("why", "").split()),
    )


def _asked_at(text: str) -> datetime:
    """When the page was shown; now, for one that is not believed."""
    now = clock.now()
    try:
        shown = parse_datetime(text)
    except ValueError:
        shown = None
    believed = shown is not None and shown.tzinfo and now - FRESH < shown <= now
    return shown if shown is not None and believed else now


def _max_id(text: str) -> int:
    newest = WorkItem.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    return min(int(text), newest) if _is_number(text) else newest


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _problems(draft: BulkOperation, at_most: str) -> dict[str, str]:
    problems = {"why": verbs.reason_problem(draft.why)}
    if not _is_number(at_most) or not 1 <= int(at_most) <= dry.LIMIT:
        problems["at_most"] = f"Enter a number from 1 to {dry.LIMIT:,}."
    return {name: problem for name, problem in problems.items() if problem}


def _ask(
    request: HttpRequest,
    draft: BulkOperation,
    verb: Verb,
    seen: DryRun,
    *,
    problems: dict[str, str],
) -> HttpResponse:
    what = f"{seen.count:,}{'+' if seen.more else ''} {verb.noun}{'' if seen.count == 1 else 's'}"
    return page.render(
        request,
        "operations/begin.html",
        title=verb.question.format(what=what),
        group="Queue",
        crumbs=(("Bulk operations", reverse("admin:operations")),),
        status=400 if problems else 200,
        quiet=True,
        draft=draft,
        verb=verb,
        dry=seen,
        what=what,
        limit=dry.LIMIT,
        sample=[(row, registry.title(row.handler)) for row in seen.sample],
        chips=matching.chips(draft),
        back=f"{reverse(LISTS[draft.of])}?{draft.query}",
        button=verb.button.format(what=what),
        keep=verb.keep,
        why=draft.why,
        problems=problems,
    )


def _started(draft: BulkOperation, seen: DryRun) -> HttpResponse:
    """One operation for who operates all tenants; else one for each tenant."""
    draft.expected = seen.count
    if draft.tenants is None:
        start.start(draft, origin="admin")
        return redirect("admin:operation", draft.pk)
    theirs = Tenant.objects.filter(id__in=seen.tenants.keys() & set(draft.tenants))
    with transaction.atomic():  # all of them, or none
        made = [_of_tenant(draft, each, rows=seen.tenants[each.pk]) for each in theirs]
    if len(made) == 1:
        return redirect("admin:operation", made[0].pk)
    return redirect("admin:operations")


def _of_tenant(draft: BulkOperation, tenant: Tenant, *, rows: int) -> BulkOperation:
    values = {
        field.attname: getattr(draft, field.attname)
        for field in BulkOperation._meta.concrete_fields
    }
    one = BulkOperation(**{**values, "tenant_id": tenant.pk, "tenants": [tenant.pk]})
    one.expected = rows
    start.start(one, origin="admin")
    return one
