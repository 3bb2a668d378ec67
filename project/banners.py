"""banners: what holds on every page until somebody ends it: pauses, and workers switched off.

They come from the live settings that this process knows anyway, at most 5 s old.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from audit import clock, page
from workqueue import access, live, policy, registry
from workqueue.live import PauseRow
from workqueue.models import Setting, WorkItem

MOST = 5  # pauses told one by one; the others are counted
MOST_COUNTED = 10_000  # items
VERSIONS = 100  # looked back through for when workers were switched off


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseBanner:
    """Something is paused."""

    title: str  # "Notification Handler is paused"
    since: datetime
    who: str
    reason: str
    until: datetime | None  # null: until somebody ends it
    left: timedelta | None
    address: str  # where it is ended; "" where the reader cannot
    kind: str = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedBanner:
    """START_WORKERS_ON_MASTER is off."""

    since: datetime | None  # null: not by an operator's version
    who: str
    why: str
    waiting: int
    more: bool  # at least so many wait
    address: str
    kind: str = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreBanner:
    """So many pauses that a page would be nothing else."""

    count: int
    address: str
    kind: str = "more"


type Banner = PauseBanner | StoppedBanner | MoreBanner


def of(request: HttpRequest) -> list[Banner]:
    """The banners of this reader's pages. No statement while all is as it should be."""
    now, known = clock.now(), live.current()
    seen = page.tenants(request)
    pauses = [row for row in known.pauses if row.holds(now) and _concerns(row, seen)]
    found: list[Banner] = [
        _pause(
            row,
            now=now,
            ends=access.may(request, "workqueue.resume_queue", row.tenant_id),
        )
        for row in pauses[:MOST]
    ]
    if len(pauses) > MOST:
        found.append(MoreBanner(count=len(pauses) - MOST, address=_address("pauses")))
    return found if known.policy.start_workers else [_stopped(seen), *found]


def _concerns(row: PauseRow, seen: frozenset[int] | None) -> bool:
    return seen is None or row.tenant_id is None or row.tenant_id in seen


def _pause(row: PauseRow, *, now: datetime, ends: bool) -> PauseBanner:
    what = {
        "everything": "Everything",
        "handler": registry.title(row.handler),
        "tenant": f"Tenant {row.tenant}",
        "job_type": f"Job type {row.handler}",
    }.get(row.scope, row.scope)
    return PauseBanner(
        title=f"{what} is paused",
        since=row.since,
        who=row.who,
        reason=row.reason,
        until=row.until,
        left=row.until - now if row.until else None,
        address=reverse("admin:resume", args=[row.id]) if ends else "",
    )


def _stopped(seen: frozenset[int] | None) -> StoppedBanner:
    """Since when, by whom, why, and what waits for it."""
    name = policy.WORKER_NODE_CONFIGURATION.name
    cause: Setting | None = None
    for version in Setting.objects.filter(name=name).order_by("-version")[:VERSIONS]:
        if policy.resolve(version.values)[0].start_workers:
            break
        cause = version
    waiting = (
        WorkItem.objects.pending()
        if seen is None
        else WorkItem.objects.pending().filter(tenant_id__in=seen)
    )
    count = waiting[: MOST_COUNTED + 1].count()
    return StoppedBanner(
        since=cause.at if cause else None,
        who=cause.who if cause else "",
        why=cause.why if cause else "",
        waiting=min(count, MOST_COUNTED),
        more=count > MOST_COUNTED,
        address=_address("settings") if seen is None else "",
    )


def _address(name: str) -> str:
    try:
        return reverse(f"admin:{name}")
    except NoReverseMatch:
        return ""
