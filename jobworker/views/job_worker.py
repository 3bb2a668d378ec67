"""job_worker: the caps, what each job worker makes of them, and what runs now."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from audit import clock, page
from jobworker import caps, cards, connection_budget
from jobworker.models import Job
from jobworker.tables import JobLine, JobTable
from jobworker.views import jobs
from workqueue import readout
from workqueue.bounds import Declaration
from workqueue.models import Node, Setting
from workqueue.views.settings import context, edit

MOST = 20  # jobs that are shown; the list has all


class JobsNow(JobTable):
    """What runs and waits."""

    caption = "Jobs that run and wait"

    class Meta(JobTable.Meta):
        exclude = ("submitted",)


@page.needs("workqueue.view_setting", platform=True, methods=page.ASKS)
def job_worker(request: HttpRequest) -> HttpResponse:
    """The page; by POST, a new version of the caps."""
    return edit(request, caps.DECLARATION, show=_show)


def _show(request: HttpRequest, declaration: Declaration, **typed: Any) -> HttpResponse:
    now = clock.now()
    found = cards.alive(now)
    budget = connection_budget.look()
    processes = readout.processes(now, kind=Node.Kind.JOBWORKER)
    stored = Setting.objects.newest(declaration.name)
    used, adjusted = caps.resolve(stored.values if stored else {})
    unfinished = Job.objects.unfinished()
    return page.render(
        request,
        "jobworker/job_worker.html",
        title=declaration.name,
        group="Global Settings",
        lead=declaration.sentence,
        restart=caps.RESTART,
        ceiling=caps.Caps(
            tiers=used.tiers, total=used.total, executor_threads=0
        ).ceiling(),
        adjusted=adjusted,
        cards=found,
        gone=None if found else cards.last_gone(),
        least=cards.least(found),
        budget=budget,
        wishes={each.host: each for each in budget.wishes},
        table_html=JobsNow(_lines(now), now=now).as_html(request),
        running=unfinished.filter(status=Job.Status.RUNNING).count(),
        pending=unfinished.filter(status=Job.Status.PENDING).count(),
        all_jobs=f"{reverse('admin:jobs')}?status=pending&status=running",
        **context(request, declaration, processes, **typed),
    )


def _lines(now: datetime) -> list[JobLine]:
    """What runs first, then what waits, oldest first."""
    rows = Job.objects.unfinished().order_by("-status", "created_at")
    return jobs.lines(list(rows[:MOST]), now=now)
