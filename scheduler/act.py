"""act: what operators do to a handler on the Timetable: pause, resume, change, run now.

Each is a page that says what will happen and asks why, and a POST that does it through
`override` or `pauses`, which record the change.
"""

from collections.abc import Callable
from functools import wraps

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from audit import clock, page
from scheduler import board, override
from scheduler.board import Line
from scheduler.cadence import EXAMPLES
from scheduler.forms import CadenceForm, PauseForm, Reasoned
from workqueue import live, pauses, tenancy
from workqueue.exceptions import InvalidValues
from workqueue.models import Membership, Pause

ORIGIN = "admin"

type View = Callable[[HttpRequest, Line], HttpResponse]


def subject(key: str) -> str:
    """What the Changes page calls a handler."""
    return f"handler:{key}"


def may(request: HttpRequest) -> bool:
    """Whether this reader may change what the platform does."""
    return tenancy.allows(request.user, tenant_id=None, role=Membership.Role.OPERATOR)


def _verb(view: View) -> Callable[..., HttpResponse]:
    """GET asks, POST does; for operators of the platform, on rows that exist."""

    @wraps(view)
    def guarded(request: HttpRequest, key: str) -> HttpResponse:
        line = board.line(key, now=clock.now())
        if line is None:
            raise Http404
        if not may(request):
            raise PermissionDenied
        return view(request, line)

    return page.platform_only(require_http_methods(["GET", "POST"])(guarded))


@_verb
def pause(request: HttpRequest, line: Line) -> HttpResponse:
    """Stop enqueuing and claiming it, for every tenant, for a while or until somebody ends it."""
    title = line.handler.title
    form = PauseForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _paused(request, line, form):
        return _done(request, line, f"{title} is paused.")
    return _ask(
        request,
        line,
        form,
        title=f"Pause {title}?",
        says=[
            "Nothing of it is enqueued by slot or claimed, for every tenant. What runs goes on, what waits goes on waiting.",
            "Slots within the pause are counted as paused, not made up for. Run now stays possible, and asks first.",
        ],
        verb="Pause it",
        leave="Let it run",
    )


def _paused(request: HttpRequest, line: Line, form: PauseForm) -> bool:
    """Pause it, or say on the form why not."""
    span = form.span()
    try:
        pauses.pause(
            scope=Pause.Scope.HANDLER,
            handler=line.handler.key,
            reason=form.cleaned_data["why"],
            until=clock.now() + span if span else None,
            who=request.user.get_username(),
            origin=ORIGIN,
        )
    except InvalidValues as refused:
        form.add_error(None, " ".join(refused.problems.values()))
        return False
    return True


@_verb
def resume(request: HttpRequest, line: Line) -> HttpResponse:
    """End the pauses that name this handler."""
    title = line.handler.title
    mine = list(
        Pause.objects.in_force().filter(
            scope=Pause.Scope.HANDLER, handler=line.handler.key
        )
    )
    if not mine:
        messages.info(
            request,
            f"{title} is not paused by itself. Pauses of everything or of a tenant stand under Pauses.",
        )
        return redirect(line.address)
    form = Reasoned(request.POST or None)
    if request.method == "POST" and form.is_valid():
        who, why = request.user.get_username(), form.cleaned_data["why"]
        ended = [pauses.resume(one, who=who, origin=ORIGIN, why=why) for one in mine]
        said = (
            f"{title} is resumed."
            if any(ended)
            else f"{title} had been resumed by somebody else."
        )
        return _done(request, line, said)
    return _ask(
        request,
        line,
        form,
        title=f"Resume {title}?",
        says=[
            "Its next slot is enqueued again. Slots within the pause are counted, and not made up for."
        ],
        paused=mine,
        verb="Resume it",
        leave="Leave it paused",
    )


@_verb
def change_cadence(request: HttpRequest, line: Line) -> HttpResponse:
    """Let it tick at another cadence than the timetable's, or at the timetable's again."""
    title, own = line.handler.title, line.handler.cadence
    first = {"cadence": line.cadence}
    form = CadenceForm(request.POST or None, handler=line.handler, initial=first)
    if request.method == "POST" and form.is_valid():
        override.change_cadence(
            line.handler.key,
            cadence=form.cleaned_data["cadence"],
            who=request.user.get_username(),
            origin=ORIGIN,
            why=form.cleaned_data["why"],
        )
        return _done(
            request,
            line,
            f"The cadence of {title} is changed; the master applies it at its next pass.",
        )
    return _ask(
        request,
        line,
        form,
        title=f"Change the cadence of {title}?",
        says=[
            "Slots up to now are not missed: it starts afresh with the first slot of the new cadence.",
            f"Empty, or {own}, is the timetable\u2019s own."
            if own
            else "Empty makes it on demand again.",
        ],
        verb="Change the cadence",
        leave="Leave it as it is",
        examples=EXAMPLES,
    )


@_verb
def run_now(request: HttpRequest, line: Line) -> HttpResponse:
    """Ask the master to tick it at its next pass."""
    title = line.handler.title
    form = Reasoned(request.POST or None)
    if request.method == "POST" and form.is_valid():
        override.run_now(
            line.handler.key,
            who=request.user.get_username(),
            origin=ORIGIN,
            why=form.cleaned_data["why"],
            confirmed=True,  # the page has said that it is paused
        )
        return _done(
            request,
            line,
            f"{title} runs at the master\u2019s next pass, within 2 s while there is a master.",
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
        leave="Wait for its slot" if line.next else "Leave it",
    )


def _done(request: HttpRequest, line: Line, said: str) -> HttpResponse:
    messages.success(request, said)
    live.refresh()  # the reader's next page shows it already
    return redirect(line.address)


def _ask(
    request: HttpRequest, line: Line, form: Form, *, title: str, **context: object
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
        status=422 if form.errors else 200,
        **context,
    )
