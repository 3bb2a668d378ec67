"""transcript: the lines of one run, as its page asks for them, and as a file."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from audit import page
from workqueue.views.attempt import context, find, log_of
from workqueue.views.log import answer, file


@page.needs("audit.view_run", "audit.view_transcript")
def lines(request: HttpRequest, claim_id: UUID) -> HttpResponse:
    """What the page of a run asks for."""
    found = find(request, claim_id)
    log = log_of(found.attempt)
    return answer(
        request,
        log,
        news="workqueue/news.html",
        parts=lambda: context(request, found, written=log.newest()),
    )


@page.needs("audit.view_run", "audit.view_transcript", "audit.export")
def download(request: HttpRequest, claim_id: UUID) -> HttpResponseBase:
    """The transcript as a plain text file, whole."""
    this = find(request, claim_id).attempt
    head = f"{this.handler} for {this.tenant}, run {claim_id}, {this.state}"
    return file(
        log_of(this), head=head, name=f"run-{claim_id}", dropped=this.dropped_lines
    )
