"""settings: the searchable list, and the page of each setting. The platform's alone."""

from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings as django_settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.text import slugify

from audit import clock, page
from workqueue import access, live, policy, readout, verbs
from workqueue.bounds import Declaration
from workqueue.exceptions import InvalidValues, VersionConflict
from workqueue.models import Setting
from workqueue.verbs import LONGEST_REASON

EDIT = "workqueue.edit_caps"
VERSIONS = 50  # of the history that are shown; all are kept
SEEN = "_version"  # the version that the operator looked at


@page.needs("workqueue.view_setting", platform=True)
def settings(request: HttpRequest) -> HttpResponse:
    """All settings, by name, key or sentence."""
    sought = " ".join(request.GET.get("q", "").replace("\x00", "\u2400").split())[:100]
    rows = [
        (each, slugify(each.name), Setting.objects.newest(each.name))
        for each in declarations()
        if _matches(each, sought)
    ]
    return page.render(
        request,
        "workqueue/settings.html",
        title="Settings",
        group="Global Settings",
        lead="What can be changed while everything runs. What must be known before the database is stands in the environment: manage.py showconfig.",
        sought=sought,
        rows=rows,
    )


@page.needs("workqueue.view_setting", platform=True, methods=page.ASKS)
def setting(request: HttpRequest, slug: str) -> HttpResponse:
    """One setting: what is stored, what each process uses of it and why, and who changed it."""
    declaration = _declaration(slug)
    if declaration.page:
        return redirect(f"admin:{declaration.page}")
    return edit(request, declaration, show=_show)


def edit(
    request: HttpRequest, declaration: Declaration, *, show: Callable[..., HttpResponse]
) -> HttpResponse:
    """Show the page of a setting; by POST save it, or show what was typed and why it is refused.

    `show` is called with the request, the declaration, and `typed`, `why`, `problems`.
    """
    if request.method != "POST":
        return show(request, declaration)
    access.require(request, EDIT, [None])
    typed = _typed(request, declaration)
    why = " ".join(request.POST.get("why", "").split())
    if len(why) > LONGEST_REASON:
        problems = {
            "why": f"That is too long. Enter at most {LONGEST_REASON} characters."
        }
        return show(request, declaration, typed=typed, why=why, problems=problems)
    try:
        saved = policy.save(
            typed,
            who=request.user.get_username(),
            origin="admin",
            why=why,
            expected_version=_seen(request),
            declaration=declaration,
        )
    except InvalidValues as refused:
        problems = refused.problems
        return show(request, declaration, typed=typed, why=why, problems=problems)
    except VersionConflict as conflict:
        problems = {"": str(conflict)}
        return show(request, declaration, typed=typed, why=why, problems=problems)
    if saved.version == _seen(request):
        messages.info(request, "Nothing was changed.")
    else:
        messages.success(
            request,
            f"Version {saved.version} is saved. Every process applies it within 5 s and says so with its next report.",
        )
    return redirect(request.path)


@page.needs("workqueue.view_setting", EDIT, platform=True, methods=page.ASKS)
def restore(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    """Ask, with what would change; then, by POST with a reason, write a new version."""
    access.require(request, EDIT, [None])
    declaration = _declaration(slug)
    old = policy.history(declaration).filter(version=version).first()
    newest = Setting.objects.newest(declaration.name)
    if old is None or newest is None:
        raise Http404
    why, problem = " ".join(request.POST.get("why", "").split()), ""
    if request.method == "POST":
        problem = verbs.reason_problem(why) or _restore(
            request, declaration, version, why=why
        )
        if not problem:
            messages.success(
                request,
                f"Version {version} is restored, as version {newest.version + 1}.",
            )
            return redirect("admin:setting", slug)
    return page.render(
        request,
        "workqueue/restore.html",
        title=f"Restore version {version}?",
        group="Global Settings",
        crumbs=(
            ("Settings", reverse("admin:settings")),
            (declaration.name, reverse("admin:setting", args=[slug])),
        ),
        status=400 if problem else 200,
        quiet=True,
        declaration=declaration,
        slug=slug,
        old=old,
        newest=newest,
        next_version=newest.version + 1,
        button=f"Restore version {version}",
        why=why,
        problem=problem,
        changes=readout.changes(newest.values, old.values, declaration=declaration),
    )


def _show(request: HttpRequest, declaration: Declaration, **typed: Any) -> HttpResponse:
    processes = readout.processes(clock.now())
    return page.render(
        request,
        "workqueue/setting.html",
        title=declaration.name,
        group="Global Settings",
        crumbs=(("Settings", reverse("admin:settings")),),
        lead=declaration.sentence,
        enqueues=readout.enqueues(),
        **context(request, declaration, processes, **typed),
    )


def context(
    request: HttpRequest,
    declaration: Declaration,
    processes: Sequence[readout.Process],
    *,
    typed: dict[str, str] | None = None,
    why: str = "",
    problems: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What every page of a setting shows: values, how far they have reached, history."""
    now, problems = clock.now(), problems or {}
    live.refresh()  # the banner agrees with the values, also right after a save
    newest = Setting.objects.newest(declaration.name)
    versions = list(policy.history(declaration)[: VERSIONS + 1])
    return {
        "status": 400 if problems else 200,
        "live": not problems,  # what was typed and refused stays
        "now": now,
        "slug": slugify(declaration.name),
        "newest": newest,
        "version": newest.version if newest else 0,
        "next_version": newest.version + 1 if newest else 1,
        "seen": SEEN,
        "problems": problems,
        "general": problems.get("", ""),
        "why": why,
        "rows": readout.rows(
            declaration, newest, processes, typed=typed, problems=problems
        ),
        "processes": processes,
        "spread": readout.spread(processes, newest, now=now),
        "history": readout.history(versions, declaration=declaration)[:VERSIONS],
        "total": policy.history(declaration).count()
        if len(versions) > VERSIONS
        else len(versions),
        "may_set": access.may(request, EDIT, None),
    }


def declarations() -> tuple[Declaration, ...]:
    """All settings, in the order of settings.DECLARATIONS."""
    return tuple(import_string(path) for path in django_settings.DECLARATIONS)


def _restore(
    request: HttpRequest, declaration: Declaration, version: int, *, why: str
) -> str:
    """Do it; what stands against it, as a sentence, or ""."""
    seen = _seen(request)
    try:
        policy.restore(
            version,
            who=request.user.get_username(),
            origin="admin",
            why=why,
            expected_version=seen,
            declaration=declaration,
        )
    except InvalidValues as refused:
        return f"This version holds values that would be refused today. {refused}"
    except VersionConflict as conflict:
        return str(conflict)
    return ""


def _declaration(slug: str) -> Declaration:
    for declaration in declarations():
        if slugify(declaration.name) == slug:
            return declaration
    raise Http404


def _matches(declaration: Declaration, sought: str) -> bool:
    said = [
        declaration.name,
        declaration.sentence,
        *(f"{key.name} {key.sentence}" for key in declaration.keys),
    ]
    return all(word in " ".join(said).lower() for word in sought.lower().split())


def _typed(request: HttpRequest, declaration: Declaration) -> dict[str, Any]:
    """What was typed, key by key. A box that is not ticked is not sent: it is off."""
    return {
        key.name: request.POST.get(key.name, "off" if key.type == "boolean" else "")
        for key in declaration.keys
    }


def _seen(request: HttpRequest) -> int:
    """The version that the form showed. What is none counts as an old one: nothing is overwritten by it."""
    text = request.POST.get(SEEN, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1
