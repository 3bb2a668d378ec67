"""views: Server Audit Logs, Ticks and the Timetable, for the platform's staff.

Everybody else is told that there is no such page. What changes something is a POST
behind a page that says what will happen and asks why: see act.py.
"""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from audit import clock, keyset, page, queries, words
from audit.views import list_context
from scheduler import act, board, servers, terms
from scheduler.filters import TickFilters
from scheduler.models import Tick
from scheduler.tables import TickTable
from workqueue import access
from workqueue.models import Node

KEPT = timedelta(days=30)  # stopped nodes
EVENTS = 50  # entries of a node's execution log per page
HISTORY = 10  # changes of a handler that its opened row shows


@page.needs("workqueue.view_node", platform=True)
def nodes(request: HttpRequest) -> HttpResponse:
    """Server Audit Logs: every process, who is master, and who was."""
    now = clock.now()
    stopped = request.GET.get("stopped") == "1"
    span = terms.span(request.GET.get("span", ""))
    master = servers.mastership(now)
    rows = servers.processes(master, now=now, stopped=stopped)
    ended = Node.objects.filter(
        status=Node.Status.STOPPED, heartbeat_at__gt=now - KEPT
    ).count()
    return page.render(
        request,
        "scheduler/nodes.html",
        title="Server Audit Logs",
        live=True,
        lead="Every process that reports to the database, who is master, and who was. Platform tenant only.",
        group="Audit",
        now=now,
        master=master,
        history=terms.history(master, span=span, now=now),
        span=span,
        spans=terms.SPANS,
        processes=rows,
        alive=sum(len(row.pids) for row in rows if row.status != Node.Status.STOPPED),
        stopped=stopped,
        ended=ended,
        hidden=0 if stopped else ended,
        skewed=servers.skewed(rows),
    )


@page.needs("workqueue.view_node", platform=True)
def node(request: HttpRequest, id: UUID) -> HttpResponse:
    """View Execution Logs: one process, what it reported and what it did in elections."""
    now = clock.now()
    found = Node.objects.filter(pk=id).first()
    before = request.GET.get("before", "")
    events = queries.node_events(node_id=id, before=before, limit=EVENTS + 1)
    if found is None and not events:
        raise Http404
    master = servers.mastership(now)
    row = servers.process(found, master, now=now) if found else None
    name = f"{words.shown(found.host, limit=60)}, {found.pid}" if found else ""
    return page.render(
        request,
        "scheduler/node.html",
        title=name or words.shown(events[0].node, limit=80),
        lead="What this process is, what it reported, and its part in elections. Platform tenant only.",
        group="Audit",
        crumbs=(("Server Audit Logs", reverse("admin:nodes")),),
        now=now,
        row=row,
        report=servers.report(found) if found else (),
        events=events[:EVENTS],
        older=events[EVENTS - 1].cursor if len(events) > EVENTS else "",
        before=before,
    )


@page.needs("scheduler.view_tick", platform=True)
def ticks(request: HttpRequest) -> HttpResponse:
    """Ticks: every decision to enqueue, with what was not enqueued and why."""
    filters = TickFilters(request.GET, queryset=Tick.objects.all())
    older, newer = request.GET.get("older", ""), request.GET.get("newer", "")
    found = keyset.page(filters.qs, time="at", older=older, newer=newer)
    now = clock.now()
    return page.render(
        request,
        "scheduler/ticks.html",
        title="Ticks",
        lead="Every decision to enqueue: for how many tenants, for which not, and why. Kept for 7 days. Platform tenant only.",
        group="Audit",
        now=now,
        **list_context(
            request, filters, found, table=TickTable(found.rows, now=now), one="tick"
        ),
    )


@page.needs("scheduler.view_schedule", platform=True)
def timetable(request: HttpRequest, key: str = "") -> HttpResponse:
    """The Timetable: when each handler runs, and one row opened."""
    now = clock.now()
    lines = board.lines(now)
    chosen = next((line for line in lines if line.handler.key == key), None)
    if key and chosen is None:
        raise Http404
    text, show = request.GET.get("text", "").strip()[:100], request.GET.get("show", "")
    return page.render(
        request,
        "scheduler/timetable.html",
        title="Timetable",
        live=True,
        lead=f"When each handler runs. Slots follow server time, {settings.TIME_ZONE}; the other times on this page are yours.",
        group="Queue",
        now=now,
        lines=[
            line
            for line in lines
            if line is chosen or board.matches(line, text=text, show=show)
        ],
        counts=board.counts(lines),
        text=text,
        show=show if show in board.SHOWN else "",
        chosen=chosen,
        opened=board.opened(chosen, now=now) if chosen else None,
        history=board.history(key, limit=HISTORY) if chosen else (),
        server_zone=settings.TIME_ZONE,
        own_zone=timezone.get_current_timezone_name() != settings.TIME_ZONE,
        may_change=access.may(request, act.CHANGE, None),
        may_run=access.may(request, act.RUN, None),
        may_pause=access.may(request, "workqueue.pause_queue", None),
        may_resume=access.may(request, "workqueue.resume_queue", None),
    )


urlpatterns = [
    path("server-audit-logs/", nodes, name="nodes"),
    path("server-audit-logs/<uuid:id>/", node, name="node"),
    path("ticks/", ticks, name="ticks"),
    path("timetable/", timetable, name="timetable"),
    path("timetable/<str:key>/", timetable, name="timetable_row"),
    path("timetable/<str:key>/cadence/", act.change_cadence, name="timetable_cadence"),
    path("timetable/<str:key>/run/", act.run_now, name="timetable_run"),
]
