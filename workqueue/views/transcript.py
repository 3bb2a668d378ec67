"""transcript: the lines of one claim, as its page asks for them, and as a file.

A page that follows asks twice a second for what is behind the last line that it has.
Most of the time that is nothing, and nothing is answered. The parts of the page that
move besides come along every other second.
"""

from collections.abc import Iterator
from datetime import UTC
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from audit import clock, page, window
from audit.timeline import Attempt
from workqueue.views.attempt import context, find, number, wanted

END_OF_POLLING = 286  # htmx: take this answer and ask no more
NOTHING_NEW = 204  # htmx: leave everything as it is
PARTS_EVERY = 2  # seconds


@page.needs("audit.view_run", "audit.view_transcript")
def lines(request: HttpRequest, claim_id: UUID) -> HttpResponse:
    """A stretch: above `?before=`, below `?after=`, the newest by `?tail=`; or what a follower gets."""
    found = find(request, claim_id)
    asked = wanted(request)
    shown: dict[str, Any] = {
        "attempt": found.attempt,
        "claim_id": claim_id,
        "wanted": asked,
        "now": clock.now(),
    }
    if before := number(request, "before"):
        stretch = window.before(claim_id, before, wanted=asked)
        return render(request, "audit/lines.html", {**shown, "window": stretch})
    # The state was read first: what it says is finished has all its lines stored.
    live = found.attempt.live
    if "tail" in request.GET:
        stretch = window.tail(claim_id, wanted=asked)
        more = {"window": stretch, "following": live}
        return render(request, "workqueue/stretch.html", {**shown, **more})
    after = number(request, "after") or 0
    stretch = window.after(claim_id, after, wanted=asked)
    shown |= {"window": stretch, "continued": True}
    if "follow" not in request.GET:
        following = live and not stretch.below
        return render(
            request, "workqueue/stretch.html", {**shown, "following": following}
        )
    done = not live and not stretch.below
    told = number(request, "at", digits=10) or 0
    parts = done or clock.now().timestamp() - told >= PARTS_EVERY
    if not parts and stretch.last == after:
        return HttpResponse(status=NOTHING_NEW)
    shown |= {"done": done, "parts": parts, "oob": True, "told": told}
    if parts:
        shown |= context(request, found, written=window.newest(claim_id))
        shown["told"] = int(clock.now().timestamp())
    status = END_OF_POLLING if done else 200
    return render(request, "workqueue/news.html", shown, status=status)


@page.needs("audit.view_run", "audit.view_transcript", "audit.export")
def download(request: HttpRequest, claim_id: UUID) -> StreamingHttpResponse:
    """The transcript as a plain text file, whole."""
    found = find(request, claim_id)
    response = StreamingHttpResponse(
        _text(found.attempt), content_type="text/plain; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="run-{claim_id}.txt"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _text(attempt: Attempt) -> Iterator[str]:
    yield f"# {attempt.handler} for {attempt.tenant}, run {attempt.claim_id}, {attempt.state}\n"
    for line in window.everything(attempt.claim_id):
        yield f"{line.at.astimezone(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')} {window.level(line)} {line.text}\n"
    if attempt.dropped_lines:
        yield f"# {attempt.dropped_lines:,} lines were left out: the transcript had reached its limit\n"
