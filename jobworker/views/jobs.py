"""jobs: what waits, runs and ended, and why what waits does."""

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest, HttpResponse

from audit import clock, export, page
from audit.views import List, list_context, own_context, page_of
from jobworker import registry, waiting
from jobworker.filters import JobFilters
from jobworker.models import Job
from jobworker.tables import JobLine, JobTable
from workqueue import access, names

SUBMIT = "jobworker.submit_job"
SUGGESTED = 200  # tenants offered beside the filter's field; any other can be typed
JOBS = List(
    name="jobs",
    permission="jobworker.view_job",
    filters=JobFilters,
    rows=Job.objects.all(),
    file=export.Export(
        name="jobs",
        time="created_at",
        fields={
            **export.fields_of(
                Job, "id", "status", "type", "tier", "subject", "tenant_slug", "tenant_id",
                "priority", "created_at", "created_by", "origin", "claimed_at", "started_at",
                "finished_at", "claim_id", "node", "progress", "phase", "line_count",
                "summary", "error_code", "error",
            ),
            "waited_ms": export.between("created_at", "claimed_at"),
            "ran_ms": export.between("started_at", "finished_at"),
        },
    ),
    ready_made=(
        ("All jobs", ""),
        ("Not ended", "status=pending&status=running"),
        ("Failed", "status=failed"),
    ),
)  # fmt: skip


@page.needs("jobworker.view_job")
def jobs(request: HttpRequest) -> HttpResponse:
    """The list."""
    filters, now = JOBS.asked(request), clock.now()
    found = page_of(request, filters.walked, filters, time="created_at")
    table = JobTable(lines(found.rows, now=now), now=now)
    return page.render(
        request,
        "jobworker/jobs.html",
        title="Jobs",
        group="Queue",
        lead="Long jobs: what waits and why, what runs, what ended. Each runs in a job worker, at most once.",
        now=now,
        may_submit=access.may_somewhere(request, SUBMIT),
        suggestions={
            "types": {row.type: row.purpose for row in registry.types().values()},
            "tenants": names.tenants(page.tenants(request), limit=SUGGESTED),
        },
        **own_context(request, JOBS),
        **list_context(
            request, filters, found, table=table, one="job", time="created_at"
        ),
    )


def lines(rows: Sequence[Job], *, now: datetime) -> list[JobLine]:
    """What the rows say besides."""
    why = waiting.why(rows, now)
    return [JobLine(job=each, why=why.get(each.pk, "")) for each in rows]
