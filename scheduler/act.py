"""act: what operators do to a handler on the Timetable: change its cadence, run it now.

Each is a page that says what will happen and asks why, and a POST that does it through
`override`, which records the change. (Pauses have pages of their own in the queue.)
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from audit import clock, page
from scheduler import board, override
from scheduler.board import Line
from scheduler.cadence import EXAMPLES
from scheduler.forms import CadenceForm, Reasoned
from workqueue import access

ORIGIN = "admin"
CHANGE, RUN = "scheduler.change_cadence", "scheduler.run_schedule"

type View = Callable[[HttpRequest, Line], HttpResponse]


def _verb(permission: str) -> Callable[[View], Callable[..., HttpResponseBase]]:
    """GET asks, POST does; for operators of the platform, on rows that exist."""

    def verb(view: View) -> Callable[..., HttpResponseBase]:
        @page.needs(
            "scheduler.view_schedule", permission, platform=True, methods=page.ASKS
        )
        @wraps(view)
        def guarded(request: HttpRequest, key: str) -> HttpResponse:
            access.require(request, permission, [None])
            line = board.line(key, now=clock.now())
            if line is None:
                raise Http404
            return view(request, line)

        return guarded

    return verb


@_verb(CHANGE)
def change_cadence(request: HttpRequest, line: Line) -> HttpResponse:
    """Let it tick at another cadence than the timetable's, or at the timetable's again."""
    own = line.handler.cadence
    first = {"cadence": line.cadence}
    form = CadenceForm(request.POST or None, handler=line.handler, initial=first)
    sure = ""
    if request.method == "POST" and form.is_valid():
        text = form.cleaned_data["cadence"]
        if not text or not override.is_fast(text) or request.POST.get("sure") == text:
            return _done(request, line, _changed(request, line, form))
        sure = text  # asked once more, with what it costs
    present = line.cadence and not line.problem
    return _ask(
        request,
        line,
        form,
        title=f"Change the cadence of {line.handler.title}?",
        says=[
            "Slots up to now are not missed: it starts afresh with the first slot of the new cadence.",
            f"Empty, or {own}, is the timetable\u2019s own."
            if own
            else "Empty makes it on demand again.",
            *([override.cost(line.cadence, row=line.handler)] if present else []),
        ],
        sure=sure,
        asks=f"{override.cost(sure, row=line.handler)} Change it all the same?"
        if sure
        else "",
        verb="Change the cadence",
        examples=EXAMPLES,
    )


def _changed(request: HttpRequest, line: Line, form: CadenceForm) -> str:
    """Change it and say so."""
    title = line.handler.title
    if not override.change_cadence(
        line.handler.key,
        cadence=form.cleaned_data["cadence"],
        who=request.user.get_username(),
        origin=ORIGIN,
        why=form.cleaned_data["why"],
    ):
        return f"Nothing was changed: {title} has this cadence already."
    return (
        f"The cadence of {title} is changed; the master takes it up at its next pass."
    )


@_verb(RUN)
def run_now(request: HttpRequest, line: Line) -> HttpResponse:
    """Ask the master to tick it at its next pass."""
    title = line.handler.title
    form = Reasoned(request.POST or None)
    if request.method == "POST" and form.is_valid():
        asked = override.run_now(
            line.handler.key,
            who=request.user.get_username(),
            origin=ORIGIN,
            why=form.cleaned_data["why"],
            confirmed=True,  # this page has said that it is paused
        )
        said = f"{title} runs at the master\u2019s next pass, within 2 s while there is one."
        return _done(
            request, line, said if asked else f"{title} has been asked for already."
        )
    return _ask(
        request,
        line,
        form,
        title=f"Run {title} now?",
        says=[
            "The master enqueues an item for every eligible tenant at its next pass. Its slots stay as they are.",
            "A tenant whose item is executing runs it once more afterwards.",
        ],
        verb="Run it now",
    )


def _done(request: HttpRequest, line: Line, said: str) -> HttpResponse:
    messages.success(request, said)
    return redirect(line.address)


def _ask(
    request: HttpRequest, line: Line, form: Form, *, title: str, **context: Any
) -> HttpResponse:
    """The page between the button and the deed; refused values are shown beside their fields."""
    return page.render(
        request,
        "scheduler/confirm.html",
        title=title,
        group="Queue",
        crumbs=(
            ("Timetable", reverse("admin:timetable")),
            (line.handler.title, line.address),
        ),
        line=line,
        form=form,
        quiet=True,
        status=400 if form.errors else 200,
        **context,
    )
