"""act: ask why, then cancel a job, or adopt what a failed one began outside."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from audit import page, words
from jobworker import board, operate
from jobworker.exceptions import CannotAdopt, InvalidParams, Locked
from jobworker.models import Job
from jobworker.views.job import find
from workqueue import access, verbs

CANCEL, ADOPT = "jobworker.cancel_job", "jobworker.adopt_job"


@page.needs("jobworker.view_job", CANCEL, methods=page.ASKS)
def cancel(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """End it: at once where it waits, by telling it to stop where it runs."""
    job = find(request, job_id)
    access.require(request, CANCEL, [job.tenant_id])
    if job.status not in Job.UNFINISHED:
        messages.info(request, "It has ended already: nothing was done.")
        return redirect("admin:job", job.pk)
    why, problem = _reason(request)
    if request.method == "POST" and not problem:
        who = request.user.get_username()
        if operate.cancel(job, who=who, origin="admin", why=why):
            said = (
                "It is told to stop. Its page says what was stopped."
                if job.status == Job.Status.RUNNING
                else "It is cancelled: it never began."
            )
            messages.success(request, said)
        else:
            messages.info(
                request, "It had ended, or somebody else had told it to stop."
            )
        return redirect("admin:job", job.pk)
    runs = job.status == Job.Status.RUNNING
    return _ask(
        request,
        job,
        title="Cancel this job?",
        consequence=f"{_sentence(board.cancel_does(job))} What it has done outside by then stays; its output and its state are kept. It is not started again."
        if runs
        else "It waits and has done nothing yet: it is cancelled at once. It stays in the list as cancelled.",
        button="Cancel the job",
        keep="Let it run" if runs else "",
        danger=True,
        why=why,
        problem=problem,
    )


@page.needs("jobworker.view_job", ADOPT, methods=page.ASKS)
def adopt(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Submit a job that only follows what this one began outside."""
    job = find(request, job_id)
    access.require(request, ADOPT, [job.tenant_id])
    if reason := operate.adoptable(job):
        messages.warning(request, f"It cannot be adopted. {reason}")
        return redirect("admin:job", job.pk)
    why, problem = _reason(request)
    if request.method == "POST" and not problem:
        who = request.user.get_username()
        try:
            heir = operate.adopt(job, who=who, origin="admin", why=why)
        except (CannotAdopt, InvalidParams, Locked) as refused:
            messages.warning(request, f"It was not adopted. {refused}")
            return redirect("admin:job", job.pk)
        messages.success(request, "Adopted: this job follows what the other one began.")
        return redirect("admin:job", heir.pk)
    return _ask(
        request,
        job,
        title="Adopt what this job began?",
        consequence=f"A new job follows it until it ends: {words.shown(board.external(job), limit=400)}. It starts nothing there, so nothing is done twice.",
        button="Adopt it",
        danger=False,
        why=why,
        problem=problem,
    )


def _ask(
    request: HttpRequest, job: Job, *, title: str, problem: str, **more: Any
) -> HttpResponse:
    return page.render(
        request,
        "jobworker/act.html",
        title=title,
        group="Queue",
        crumbs=(
            ("Jobs", reverse("admin:jobs")),
            (words.shown(str(job), limit=80), reverse("admin:job", args=[job.pk])),
        ),
        status=400 if problem else 200,
        quiet=True,
        job=job,
        state=board.state(job),
        problem=problem,
        **more,
    )


def _reason(request: HttpRequest) -> tuple[str, str]:
    """(why, what is wrong with it)."""
    why = " ".join(request.POST.get("why", "").split())
    return why, verbs.reason_problem(why) if request.method == "POST" else ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
