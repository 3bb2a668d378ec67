"""log: the lines of one claim on a page that follows them, whoever runs it: an item or a job.

A page with a log has its lines below its own address: `lines/` and `transcript/`. It asks
twice a second for what is behind the last line that it has. Most of the time that is
nothing, and nothing is answered. The parts of the page that move besides come along every
other second.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from audit import clock, window
from audit.fields import VisibleTextField

LONGEST_TEXT = 1000  # characters that are looked for in a transcript
END_OF_POLLING = 286  # htmx: take this answer and ask no more
NOTHING_NEW = 204  # htmx: leave everything as it is
PARTS_EVERY = 2  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Whose lines a page shows, and where it asks for them."""

    claim_id: UUID | None  # None: nobody has claimed it yet
    place: str  # the page's address
    live: bool  # more lines may come
    began: bool

    def shown(self, wanted: window.Wanted, *, selected: int | None) -> dict[str, Any]:
        """What a page needs to show it: the newest lines, or those around a linked one."""
        # A link to a line shows it, whatever else is looked for.
        asked = window.ALL if selected else wanted
        if self.claim_id is None:
            found = window.EMPTY
        elif selected:
            found = window.around(self.claim_id, selected)
        else:
            found = window.tail(self.claim_id, wanted=asked)
        return {
            "log": self,
            "window": found,
            "selected": selected,
            "wanted": asked,
            "following": self.live and not found.below,
        }

    def summed(self) -> window.Sum:
        """Newest line, warnings and errors."""
        return window.summed(self.claim_id) if self.claim_id else window.NOTHING

    def newest(self) -> window.Sum:
        """The newest line alone."""
        return window.newest(self.claim_id) if self.claim_id else window.NOTHING


def answer(
    request: HttpRequest, log: Log, *, news: str, parts: Callable[[], dict[str, Any]]
) -> HttpResponse:
    """A stretch: above `?before=`, below `?after=`, the newest by `?tail=`; or what a follower gets.

    `news`: its template, which is given the `parts` of the page that move besides.
    """
    asked = wanted(request)
    shown: dict[str, Any] = {"log": log, "wanted": asked, "now": clock.now()}
    if log.claim_id and (before := number(request, "before")):
        stretch = window.before(log.claim_id, before, wanted=asked)
        return render(request, "audit/lines.html", {**shown, "window": stretch})
    # The state was read first: what it says is finished has all its lines stored.
    if "tail" in request.GET:
        more = {**log.shown(asked, selected=None), "following": log.live}
        return render(request, "workqueue/stretch.html", {**shown, **more})
    after = number(request, "after") or 0
    stretch = (
        window.after(log.claim_id, after, wanted=asked)
        if log.claim_id
        else window.EMPTY
    )
    shown |= {"window": stretch, "continued": True}
    if "follow" not in request.GET:
        following = log.live and not stretch.below
        return render(
            request, "workqueue/stretch.html", {**shown, "following": following}
        )
    done = not log.live and not stretch.below
    told = number(request, "at", digits=10) or 0
    moved = done or clock.now().timestamp() - told >= PARTS_EVERY
    if not moved and stretch.last == after:
        return HttpResponse(status=NOTHING_NEW)
    shown |= {"done": done, "parts": moved, "oob": True, "told": told}
    if moved:
        shown |= parts()
        shown["told"] = int(clock.now().timestamp())
    status = END_OF_POLLING if done else 200
    return render(request, news, shown, status=status)


def file(log: Log, *, head: str, name: str, dropped: int) -> StreamingHttpResponse:
    """All lines of a log, as a download of this name."""
    response = StreamingHttpResponse(
        _text(log, head, dropped), content_type="text/plain; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}.txt"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _text(log: Log, head: str, dropped: int) -> Iterator[str]:
    yield f"# {head}\n"
    for line in window.everything(log.claim_id) if log.claim_id else ():
        yield f"{line.at.astimezone(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')} {window.level(line)} {line.text}\n"
    if dropped:
        yield f"# {dropped:,} lines were left out: the transcript had reached its limit\n"


def wanted(request: HttpRequest) -> window.Wanted:
    """Which lines are asked for."""
    text = VisibleTextField().to_python(request.GET.get("text", ""))
    return window.Wanted(
        text=text[:LONGEST_TEXT],
        level=window.LEVELS.get(request.GET.get("level", ""), 0),
    )


def number(request: HttpRequest, name: str, *, digits: int = 9) -> int | None:
    """A number of the query string; None where it is none."""
    text = request.GET.get(name, "")
    return (
        int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
    )
