"""pauses: what is paused, by whom, why and until when; pausing and resuming."""

from datetime import datetime
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from audit import clock, page, words
from audit.fields import Moment, MomentField, length
from audit.views import scoped
from workqueue import access, live, pauses, registry, verbs
from workqueue.exceptions import InvalidValues
from workqueue.models import Pause, Tenant
from workqueue.verbs import LONGEST_REASON

PAUSE, RESUME = "workqueue.pause_queue", "workqueue.resume_queue"
ENDED = 50  # pauses that are over and still listed
CONSEQUENCE = "Nothing of it is enqueued by its slots or claimed; what runs goes on. Slots that fall into the pause count as paused, not as missed."


class UntilField(MomentField):
    """The end of a pause: `2 h` from now, or a time; empty: until somebody ends it."""

    def clean(self, value: Any) -> Moment | None:
        """The end, which must lie ahead."""
        text = str(value or "").strip()
        try:
            ahead = clock.now() + length(text)
        except (ValueError, OverflowError):
            found = super().clean(value)
        else:
            found = Moment(at=ahead, back=None, text=text)
        if found is not None and found.at <= clock.now():
            raise forms.ValidationError(
                "That time is past. A pause must end in the future; leave it empty for no end."
            )
        return found


class PauseForm(forms.Form):
    """What is paused, until when and why. Texts are checked here, the rest is the verb's."""

    scope = forms.ChoiceField(label="What")
    handler = forms.ChoiceField(label="Handler", required=False)
    job_type = forms.ChoiceField(label="Job type", required=False)
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(),
        label="Tenant",
        required=False,
        to_field_name="slug",
        empty_label="Choose a tenant",
    )
    until = UntilField(label="Until", required=False)
    reason = forms.CharField(
        label="Why",
        max_length=LONGEST_REASON,
        error_messages={
            "required": "Say why: everybody who meets the pause reads it.",
            "max_length": f"That is too long. Enter at most {LONGEST_REASON} characters.",
        },
    )

    def __init__(
        self, *args: Any, tenants: frozenset[int] | None, **kwargs: Any
    ) -> None:
        """`tenants`: those that the reader operates; None: all, and the platform too."""
        super().__init__(*args, **kwargs)
        scopes = list(Pause.Scope.choices)
        if tenants is not None:
            scopes = [each for each in scopes if each[0] == Pause.Scope.TENANT]
        _choices(self.fields["scope"], scopes)
        titles = [(key, row.title) for key, row in registry.rows().items()]
        _choices(self.fields["handler"], [("", "Choose a handler"), *titles])
        types = [(each, each) for each in registry.job_types()]
        _choices(self.fields["job_type"], [("", "Choose a job type"), *types])
        mine = Tenant.objects.all()
        if tenants is not None:
            mine = mine.filter(id__in=tenants)
        cast(Any, self.fields["tenant"]).queryset = mine.order_by("slug")

    def clean(self) -> dict[str, Any]:
        """A handler's pause names a handler, a job type's a type, a tenant's a tenant."""
        data = super().clean() or {}
        scope = data.get("scope")
        if scope == Pause.Scope.HANDLER and not data.get("handler"):
            self.add_error("handler", "Choose the handler that is paused.")
        if scope == Pause.Scope.JOB_TYPE and not data.get("job_type"):
            self.add_error("job_type", "Choose the job type that is paused.")
        if (
            scope == Pause.Scope.TENANT
            and not data.get("tenant")
            and "tenant" not in self.errors
        ):
            self.add_error("tenant", "Choose the tenant that is paused.")
        return data

    def named(self) -> str:
        """The key of the handler, or the job type, that is paused; "" for other scopes."""
        fields = {Pause.Scope.HANDLER: "handler", Pause.Scope.JOB_TYPE: "job_type"}
        name = fields.get(self.cleaned_data["scope"])
        return str(self.cleaned_data[name]) if name else ""


@page.needs("workqueue.view_pause")
def pauses_list(request: HttpRequest) -> HttpResponse:
    """Those in force, and the last that ended."""
    now = clock.now()
    live.refresh()  # the banner agrees with the list, also right after a pause
    mine = scoped(Pause.objects.select_related("tenant"), page.tenants(request))
    newest = mine.order_by("-since", "-pk")
    holds = Q(ended_at=None) & (Q(until=None) | Q(until__gt=now))
    return page.render(
        request,
        "workqueue/pauses.html",
        title="Pauses",
        group="Queue",
        lead="What must not run for a while, by whom, why and until when. What is running when a pause begins goes on.",
        now=now,
        in_force=[
            (each, _what(each), access.may(request, RESUME, each.tenant_id))
            for each in newest.filter(holds)
        ],
        over=[(each, _what(each)) for each in newest.exclude(holds)[:ENDED]],
        may_pause=access.may_somewhere(request, PAUSE),
    )


@page.needs(PAUSE, methods=page.ASKS)
def pause(request: HttpRequest) -> HttpResponse:
    """Ask what, until when and why; then pause it."""
    if not access.may_somewhere(request, PAUSE):
        raise PermissionDenied
    form = PauseForm(
        request.POST or None, tenants=access.operates(request), initial=_asked(request)
    )
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        until: Moment | None = data["until"]
        tenant = data["tenant"] if data["scope"] == Pause.Scope.TENANT else None
        access.require(request, PAUSE, [tenant.pk if tenant else None])
        try:
            made = pauses.pause(
                scope=data["scope"],
                handler=form.named(),
                tenant=tenant,
                reason=data["reason"],
                who=request.user.get_username(),
                origin="admin",
                until=until.at if until else None,
            )
        except InvalidValues as refused:
            for name, sentence in refused.problems.items():
                form.add_error(name, sentence)
        else:
            messages.success(
                request, f"{_what(made)} is paused{_until(made, clock.now())}."
            )
            return redirect("admin:pauses")
    return page.render(
        request,
        "workqueue/pause.html",
        title="Pause",
        group="Queue",
        lead=CONSEQUENCE,
        crumbs=(("Pauses", reverse("admin:pauses")),),
        status=400 if form.errors else 200,
        quiet=True,
        form=form,
    )


@page.needs("workqueue.view_pause", methods=page.ASKS)
def resume(request: HttpRequest, pause_id: int) -> HttpResponse:
    """Ask why; then end the pause."""
    found = scoped(
        Pause.objects.select_related("tenant").filter(pk=pause_id),
        page.tenants(request),
    ).first()
    if found is None:
        raise Http404
    access.require(request, RESUME, [found.tenant_id])
    why, problem = " ".join(request.POST.get("why", "").split()), ""
    if request.method == "POST":
        problem = verbs.reason_problem(why)
        if not problem:
            return _resume(request, found, why=why)
    now = clock.now()
    return page.render(
        request,
        "workqueue/resume.html",
        title=f"Resume {_what(found)}?",
        group="Queue",
        crumbs=(("Pauses", reverse("admin:pauses")),),
        status=400 if problem else 200,
        now=now,
        quiet=True,
        pause=found,
        what=_what(found),
        until=_until(found, now),
        why=why,
        problem=problem,
    )


def _choices(field: forms.Field, choices: list[tuple[str, str]]) -> None:
    cast(forms.ChoiceField, field).choices = choices


def _resume(request: HttpRequest, found: Pause, *, why: str) -> HttpResponse:
    if pauses.resume(found, who=request.user.get_username(), origin="admin", why=why):
        messages.success(
            request,
            f"{_what(found)} is resumed. What waits is claimed at once; its next slot enqueues again.",
        )
    else:
        messages.info(request, "Somebody else has ended this pause already.")
    return redirect("admin:pauses")


def _what(row: Pause) -> str:
    """What is paused, as the start of a sentence."""
    if row.scope == Pause.Scope.EVERYTHING:
        return "Everything"
    if row.scope == Pause.Scope.TENANT:
        return f"Tenant {row.tenant}"
    if row.scope == Pause.Scope.JOB_TYPE:
        return f"Job type {row.handler}"
    return registry.title(row.handler)


def _until(row: Pause, now: datetime) -> str:
    if row.until is None:
        return " without an end"
    left = row.until - now
    goes_on = (
        f"for another {words.duration(left)}"
        if left.total_seconds() > 0
        else "which is over"
    )
    return f" until {words.day_and_time(row.until, now)}, {goes_on}"


def _asked(request: HttpRequest) -> dict[str, str]:
    """What a link to this page has filled in already."""
    return {
        name: request.GET[name]
        for name in ("scope", "handler", "job_type", "tenant")
        if request.GET.get(name)
    }
