"""views: notifications as operators see them, and a reader's own messages.

Mounted by `admin` below the models' addresses. Every list is scoped by tenant.
"""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from audit import clock, keyset, page, words
from scheduler.handlers.notifications import operate
from scheduler.handlers.notifications.filters import NotificationFilters
from scheduler.handlers.notifications.models import (
    MAX_ATTEMPTS,
    Notification,
    NotificationQuerySet,
    WebNotification,
)
from scheduler.handlers.notifications.tables import NotificationTable, state
from workqueue import access

GROUP = "Notifications"
LIST = "admin:notifications_notification_changelist"
OWN = "admin:notifications_webnotification_changelist"
VIEW = "notifications.view_notification"
MAY = {
    "retry": "notifications.retry_notification",
    "suppress": "notifications.suppress_notification",
}
VERBS = {"retry": operate.retry, "suppress": operate.suppress}
DONE = {"retry": "will be sent with the next run", "suppress": "will not be sent"}
MOST = 1_000  # rows of one action


def scoped(request: HttpRequest) -> NotificationQuerySet:
    """The notifications of the tenants that this reader may see."""
    rows = Notification.objects.select_related("tenant", "channel").defer(
        "channel__secret"
    )
    tenants = page.tenants(request)
    return rows if tenants is None else rows.filter(tenant_id__in=tenants)


@page.needs(VIEW)
def notifications(request: HttpRequest) -> HttpResponse:
    """The list, newest first."""
    found = NotificationFilters(request.GET, queryset=scoped(request))
    shown = _page(request, found.qs.defer("body_text", "body_html", "payload"))
    table = NotificationTable(shown.rows, now=clock.now())
    return page.render(
        request,
        "notifications/list.html",
        title="Notifications",
        lead="Messages to people, newest first. What is due is sent every 15 s.",
        group=GROUP,
        filters=found,
        rows=shown.rows,
        slow=shown.slow,
        table_html=table.as_html(request) if shown.rows else "",
        matches=keyset.matches(keyset.count(found.qs), "notification"),
        first_at=shown.first_at,
        last_at=shown.last_at,
        newest=_with(request),
        newer=_with(request, newer=shown.newer) if shown.newer else "",
        older=_with(request, older=shown.older) if shown.older else "",
        may={verb: access.may_somewhere(request, right) for verb, right in MAY.items()},
    )


@page.needs(VIEW)
def notification(request: HttpRequest, pk: int) -> HttpResponse:
    """One notification with all that is known of it."""
    row = get_object_or_404(scoped(request), pk=pk)
    return page.render(
        request,
        "notifications/notification.html",
        title=words.shown(row.subject, limit=80) or f"Notification {row.pk}",
        group=GROUP,
        crumbs=(("Notifications", reverse(LIST)),),
        row=row,
        state=state(row),
        attempts=f"{row.attempts} of {MAX_ATTEMPTS}",
        may={
            verb: access.may(request, right, row.tenant_id)
            for verb, right in MAY.items()
        },
        can={
            "retry": scoped(request).retriable().filter(pk=pk).exists(),
            "suppress": scoped(request).suppressible().filter(pk=pk).exists(),
        },
    )


@page.needs(VIEW, methods=page.DOES)
def act(request: HttpRequest) -> HttpResponse:
    """Retry or suppress the rows that were selected; says how many it was."""
    verb = request.POST.get("do", "")
    if verb not in VERBS:
        raise Http404
    if not access.may_somewhere(request, MAY[verb]):
        raise PermissionDenied
    ids = [
        int(text)
        for text in request.POST.getlist("id")[:MOST]
        if text.isascii() and text.isdecimal() and len(text) < 19
    ]
    rows = scoped(request).filter(pk__in=ids).order_by("pk")
    if (operated := access.operates(request)) is not None:
        rows = rows.filter(tenant_id__in=operated)
    why = request.POST.get("why", "").replace("\x00", "")[:1_000]
    moved = VERBS[verb](rows, who=request.user.get_username(), why=why)
    left = len(ids) - moved
    if moved:
        messages.success(
            request, f"{words.plural(moved, 'notification')} {DONE[verb]}."
        )
    if left:
        messages.warning(
            request,
            f"{words.plural(left, 'notification')} left as it was: sent, being sent, or that already.",
        )
    if not ids:
        messages.warning(request, "No notification was selected.")
    return redirect(_back(request, reverse(LIST)))


@page.needs()
def own(request: HttpRequest) -> HttpResponse:
    """The reader's own messages, newest first."""
    mine = _own(request).select_related("tenant")
    shown = _page(request, mine)
    return page.render(
        request,
        "notifications/own.html",
        title="Your notifications",
        lead="What happened that you should know. Only you see this list.",
        group=GROUP,
        rows=shown.rows,
        unread=_own(request).unread().exists(),
        newest=_with(request),
        newer=_with(request, newer=shown.newer) if shown.newer else "",
        older=_with(request, older=shown.older) if shown.older else "",
    )


@page.needs(methods=page.DOES)
def mark_read(request: HttpRequest) -> HttpResponse:
    """Take one message off the badge, or all (`id` absent); then to where it leads, if it does."""
    mine = _own(request)
    chosen = request.POST.get("id", "")
    if not chosen:
        mine.mark_read()
        return redirect(OWN)
    if not (chosen.isascii() and chosen.isdecimal() and len(chosen) < 19):
        raise Http404
    row = get_object_or_404(mine, pk=int(chosen))
    mine.filter(pk=row.pk).mark_read()
    return redirect(
        row.url
        if "follow" in request.POST and row.url
        else _back(request, reverse(OWN))
    )


def _own(request: HttpRequest) -> Any:
    user = request.user
    return WebNotification.objects.own(user.pk or 0, tenants=page.tenants(request))


def _page(request: HttpRequest, rows: QuerySet[Any]) -> keyset.Page[Any]:
    """The stretch of the list that the address asks for."""
    older, newer = request.GET.get("older", ""), request.GET.get("newer", "")
    return keyset.page(rows, time="created_at", older=older, newer=newer)


def _with(request: HttpRequest, **place: str) -> str:
    """The same list at another place."""
    query = request.GET.copy()
    for name in ("older", "newer"):
        query.pop(name, None)
    for name, value in place.items():
        query[name] = value
    return f"?{query.urlencode()}"


def _back(request: HttpRequest, otherwise: str) -> str:
    """The page that the form stood on, if it is one of ours."""
    address = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(
        address, {request.get_host()}, request.is_secure()
    )
    return address if ours and address.startswith("/") else otherwise
