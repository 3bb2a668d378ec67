"""new: choose a type, fill in its parameters, submit."""

import re
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audit import page, words
from audit.views import scoped
from jobworker import forms, params, registry
from jobworker.exceptions import InvalidParams, Locked, UnknownType
from jobworker.models import Job
from jobworker.registry import JobType
from jobworker.submit import submit as submit_job
from workqueue import access
from workqueue.models import Tenant
from workqueue.verbs import LONGEST_REASON

SUBMIT = "jobworker.submit_job"
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@page.needs(SUBMIT)
def choose(request: HttpRequest) -> HttpResponse:
    """The types that people submit, each with what it is for."""
    _require(request)
    rows = [row for row in registry.types().values() if row.by_hand]
    return page.render(
        request,
        "jobworker/choose.html",
        title="New job",
        group="Queue",
        lead="What is it to do?",
        crumbs=(("Jobs", reverse("admin:jobs")),),
        quiet=True,
        rows=[(row, Job.Tier(row.tier).label) for row in rows],
    )


@page.needs(SUBMIT, methods=page.ASKS)
def submit(request: HttpRequest, type: str) -> HttpResponse:
    """Ask for the parameters of a type; by POST, submit it."""
    _require(request)
    row = _row(type)
    if request.method != "POST":
        return _form(request, row, **_asked(request, row))
    typed, sent = forms.typed(type, request.POST), request.POST
    tenant = _tenants(request).filter(slug=_word(sent.get("tenant", ""))).first()
    priority, problem = forms.priority(sent.get("priority", ""))
    why = " ".join(sent.get("why", "").split())
    problems = {"priority": problem} if problem else {}
    if tenant is None:
        problems["tenant"] = "Choose the tenant that it is for."
    if len(why) > LONGEST_REASON:
        problems["why"] = f"Enter at most {LONGEST_REASON} characters."
    refused: dict[str, str] = {}
    general: SafeString | str = ""
    try:
        # Parameters are looked at even if something else is wrong: all of it is said at once.
        params.read(registry.module(type).Params, typed)
        if tenant is not None and not problems:
            job = submit_job(
                type,
                typed,
                tenant=tenant,
                who=request.user.get_username(),
                origin="admin",
                priority=priority,
                why=why,
            )
            messages.success(request, f"{job} is submitted.")
            return redirect("admin:job", job.pk)
    except InvalidParams as invalid:
        refused = invalid.problems
        general = refused.get("parameters", "")
    except Locked as locked:
        general = _linked(str(locked))
    return _form(
        request,
        row,
        typed=typed,
        tenant=sent.get("tenant", ""),
        priority=sent.get("priority", ""),
        why=why,
        refused=refused,
        problems=problems,
        general=general,
    )


def _form(
    request: HttpRequest,
    row: JobType,
    *,
    typed: dict[str, str],
    tenant: str,
    priority: str = "0",
    why: str = "",
    refused: dict[str, str] | None = None,
    problems: dict[str, str] | None = None,
    general: SafeString | str = "",
    again: Job | None = None,
) -> HttpResponse:
    bad = bool(refused or problems or general)
    return page.render(
        request,
        "jobworker/submit.html",
        title=f"New job: {row.type}",
        group="Queue",
        lead=row.purpose,
        crumbs=(("Jobs", reverse("admin:jobs")), ("New job", reverse("admin:job_new"))),
        status=400 if bad else 200,
        quiet=True,
        row=row,
        tier=Job.Tier(row.tier).label,
        fields=forms.fields(row.type, typed, refused or {}),
        tenants=list(_tenants(request)),
        tenant=tenant,
        priority=priority,
        priority_key=forms.PRIORITY,
        why=why,
        longest=LONGEST_REASON,
        problems=problems or {},
        count=len(refused or {}) + len(problems or {}),
        general=general,
        again=again,
    )


def _asked(request: HttpRequest, row: JobType) -> dict[str, Any]:
    """What a link has filled in already: another job's parameters, a tenant."""
    again = request.GET.get("again", "")
    if UUIDS.fullmatch(again):
        mine = scoped(Job.objects.all(), page.tenants(request))
        found = mine.filter(pk=UUID(again), type=row.type).first()
        if found is not None:
            return {
                "typed": forms.prefilled(row.type, found.params),
                "tenant": found.tenant_slug,
                "priority": str(found.priority),
                "again": found,
            }
    tenants = list(_tenants(request)[:2])
    only = tenants[0].slug if len(tenants) == 1 else ""
    return {
        "typed": forms.prefilled(row.type, request.GET.dict()),
        "tenant": _word(request.GET.get("tenant", "")) or only,
    }


def _require(request: HttpRequest) -> None:
    """Refuse whoever may submit for no tenant at all."""
    if not access.may_somewhere(request, SUBMIT):
        raise PermissionDenied


def _row(type: str) -> JobType:
    try:
        row = registry.row(type)
    except UnknownType as unknown:
        raise Http404(str(unknown)) from None
    if not row.by_hand:
        raise Http404(f"Jobs of type {type} are submitted by the engine alone.")
    return row


def _tenants(request: HttpRequest) -> QuerySet[Tenant]:
    """Those that the reader may submit for."""
    operated = access.operates(request)
    mine = Tenant.objects.active()
    return (mine if operated is None else mine.filter(id__in=operated)).order_by("slug")


def _word(text: str) -> str:
    """As much of it as a slug has, without what no column can be asked for."""
    return text.replace("\x00", "")[:64]


def _linked(sentence: str) -> SafeString:
    """A sentence that names another job, with a link to it."""
    shown = words.shown(sentence, limit=500)
    if (found := UUIDS.search(shown)) is None:
        return format_html("{}", shown)
    return format_html(
        '{}<a href="{}">{}</a>{}',
        shown[: found.start()],
        reverse("admin:job", args=[found[0]]),
        found[0],
        shown[found.end() :],
    )
