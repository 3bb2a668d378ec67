"""job: the page of one job, from the submit to the archive, and its live output."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.safestring import SafeString

from audit import clock, page, queries, words
from audit.text import gate_json
from audit.views import scoped
from jobworker import board, drawn, operate, registry, waiting
from jobworker.models import Job
from workqueue import access
from workqueue.views.log import Log, answer, file, number, wanted


@page.needs("jobworker.view_job")
def job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The whole page."""
    found = find(request, job_id)
    log = _log(found)
    return page.render(
        request,
        "jobworker/job.html",
        title=words.shown(str(found)),
        group="Queue",
        crumbs=(("Jobs", reverse("admin:jobs")),),
        **log.shown(wanted(request), selected=number(request, "line")),
        **context(request, found),
        written=log.summed(),
    )


@page.needs("jobworker.view_job", "audit.view_transcript")
def lines(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """What the page asks for."""
    found = find(request, job_id)
    log = _log(found)
    return answer(
        request,
        log,
        news="jobworker/news.html",
        parts=lambda: {**context(request, found), "written": log.newest()},
    )


@page.needs("jobworker.view_job", "audit.view_transcript", "audit.export")
def download(request: HttpRequest, job_id: UUID) -> HttpResponseBase:
    """Its output as a plain text file, whole."""
    found = find(request, job_id)
    head = f"{found} for {found.tenant_slug}, job {found.pk}, {found.status}"
    return file(
        _log(found), head=head, name=f"job-{found.pk}", dropped=found.dropped_lines
    )


def find(request: HttpRequest, job_id: UUID) -> Job:
    """The job. 404: there is none, or it is another tenant's."""
    mine = scoped(Job.objects.select_related("adopts"), page.tenants(request))
    found: Job | None = mine.filter(pk=job_id).first()
    if found is None:
        raise Http404(
            "No job has this id: it never existed, or it is older than what is kept."
        )
    return found


def context(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Everything but the lines: state, progress, facts, what can be done."""
    now = clock.now()
    usual = queries.medians([job.type]).get(job.type)
    silent, unheard = board.silent_for(job, now), board.unheard_for(job, now)
    result = gate_json(job.result)
    return {
        "now": now,
        "job": job,
        "state": board.state(job),
        "lasted": board.coarse(board.lasted(job, now)),
        "waited": board.coarse(board.waited(job, now)),
        "why": waiting.why([job], now).get(job.pk, ""),
        "silent": board.coarse(silent) if silent else "",
        "waking": board.waking_words(job) if job.status == Job.Status.RUNNING else "",
        "program": board.program_words(job) if silent else "",
        "unheard": board.coarse(unheard) if unheard else "",
        "phases": board.phases(job, now),
        "usual": board.coarse(usual) if usual else "",
        "limit": timedelta(seconds=job.time_limit_s),
        "drawing": _drawing(job, now=now, usual=usual),
        "purpose": board.purpose(job.type),
        "parameters": board.named(job.params),
        "external": board.external(job),
        "cancel_does": board.cancel_does(job),
        "if_worker_dies": board.if_worker_dies(job),
        "heirs": list(job.adopted_by.order_by("created_at")),
        "result": json.dumps(result, indent=2, ensure_ascii=False) if result else "",
        "lag": board.lag_words(job),
        "run_address": _run_address(request, job),
        **_verbs(request, job),
    }


def _log(job: Job) -> Log:
    return Log(
        claim_id=job.claim_id,
        place=reverse("admin:job", args=[job.pk]),
        live=job.status in Job.UNFINISHED,
        began=job.started_at is not None,
    )


def _run_address(request: HttpRequest, job: Job) -> str:
    """Of its run in the ledger; "": there is none (yet, or any more), or not for this reader."""
    if job.claim_id is None or job.status in Job.UNFINISHED:
        return ""
    if not request.user.has_perm("audit.view_run") or not queries.run(job.claim_id):
        return ""
    return reverse("admin:run", args=[job.claim_id])


def _drawing(job: Job, *, now: datetime, usual: timedelta | None) -> SafeString | str:
    """How far it is in its time; of one that has ended the numbers say it all."""
    ran = board.lasted(job, now)
    if job.status != Job.Status.RUNNING or job.started_at is None or ran is None:
        return ""
    return drawn.track(
        started=job.started_at,
        ran=ran,
        limit=timedelta(seconds=job.time_limit_s),
        usual=usual,
        silent=board.silent_for(job, now),
    )


def _verbs(request: HttpRequest, job: Job) -> dict[str, bool]:
    """What the reader can do to it now: the buttons that are shown."""

    def may(permission: str) -> bool:
        return access.may(request, f"jobworker.{permission}", job.tenant_id)

    row = registry.types().get(job.type)
    ended = job.status not in Job.UNFINISHED
    return {
        "may_cancel": not ended and not job.cancel_requested_at and may("cancel_job"),
        "may_go_on": ended and job.error_code in operate.LEFT_BEHIND,
        "may_adopt": ended and may("adopt_job") and not operate.adoptable(job),
        "may_submit": row is not None and row.by_hand and may("submit_job"),
    }
