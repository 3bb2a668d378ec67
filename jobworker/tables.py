"""tables: jobs as a list in the house look."""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audit import words
from audit.tables import TEXT_SHOWN, Table, column
from audit.templatetags import millrace
from jobworker import board, drawn
from jobworker.models import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A job with what its row says besides."""

    job: Job
    why: str  # why it waits; "": it does not


class JobTable(Table):
    """Jobs: what waits, runs and ended."""

    caption = "Jobs, newest first"

    job = column("Job", td="w")
    state = column("State", td="first nl")
    tenant = column("Tenant", td="nl nw")
    tier = column("Tier", td="nw")
    progress = column("Progress", td="nl")
    lasted = column("For", td="n", th="n")
    what = column("Phase, or why it waits", td="w last", th="wide")
    submitted = column("Submitted", td="end nl mr-nowrap", newest_first=True)

    class Meta(Table.Meta):
        pass

    def render_job(self, record: JobLine) -> SafeString:
        """The type, which is the link to the job's page, and its subject."""
        job = record.job
        return format_html(
            '<div><a href="{}">{}</a>{}</div>',
            reverse("admin:job", args=[job.pk]),
            words.shown(job.type),
            format_html('<span class="sub">{}</span>', words.shown(job.subject))
            if job.subject
            else "",
        )

    def render_state(self, record: JobLine) -> SafeString:
        """Icon and word."""
        return millrace.status(board.state(record.job))

    def render_tenant(self, record: JobLine) -> str:
        """The slug as it was at submit."""
        return words.shown(record.job.tenant_slug)

    def render_tier(self, record: JobLine) -> str:
        """Heavy, mixed or poll-only."""
        return record.job.get_tier_display()

    def render_progress(self, record: JobLine) -> SafeString | str:
        """Of what runs, and of what did not get to its end."""
        job = record.job
        if job.status == Job.Status.RUNNING or (
            job.status != Job.Status.SUCCEEDED and job.progress
        ):
            return drawn.progress(job.progress)
        return format_html('<span class="mr-quiet">{}</span>', words.UNKNOWN)

    def render_lasted(self, record: JobLine) -> str:
        """How long it waits, runs or ran."""
        return board.coarse(board.lasted(record.job, self.now))

    def render_what(self, record: JobLine) -> SafeString | str:
        """The phase, why it waits, or how it ended."""
        job = record.job
        if job.status == Job.Status.PENDING:
            return words.shown(record.why, limit=400)
        if job.status == Job.Status.RUNNING:
            return format_html(
                "<div>{}{}</div>",
                words.shown(job.phase) or "started",
                self._sign(job),
            )
        if job.status == Job.Status.FAILED:
            said = job.error or job.summary or words.UNKNOWN
            return format_html(
                '<span class="err">{}</span>', words.shown(said, limit=TEXT_SHOWN)
            )
        return words.shown(job.summary or job.error, limit=TEXT_SHOWN) or words.UNKNOWN

    def render_submitted(self, record: JobLine) -> str:
        """When."""
        return self.when(record.job.created_at)

    def _sign(self, job: Job) -> SafeString | str:
        """What is unusual about one that runs."""
        if job.cancel_requested_at:
            said = f"told to stop by {words.shown(job.cancel_requested_by)}"
            return format_html('<span class="sub">{}</span>', said)
        if (silent := board.silent_for(job, self.now)) is not None:
            said = f"alive, silent for {board.coarse(silent)}"
        elif (unheard := board.unheard_for(job, self.now)) is not None:
            said = f"no heartbeat of its worker for {board.coarse(unheard)}"
        else:
            return ""
        return format_html(
            '<span class="sub">{}</span>', millrace.status("silent", said)
        )
