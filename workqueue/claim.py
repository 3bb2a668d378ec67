"""Items -> one worker, a batch at a time.

The UPDATE that marks a row executing also names the attempt (a fresh claim_id),
sets its start and counts it: a second UPDATE per start would cost the throughput.
Called by the worker's loop and by nobody else. An item is never claimed by two:
SKIP LOCKED on PostgreSQL, the one writer on SQLite.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Func, QuerySet, Value

from audit import clock, wire
from workqueue import sql
from workqueue.models import WorkItem

LOOK_BACK_S = 1.0  # how often a handler is looked at from its beginning, at most
LOOK_BACK_SHARE = 0.02  # of the time, where that takes long
LOOK_BACK_MOST_S = 10.0  # and at least so often
_BEGINNING = (datetime.min.replace(tzinfo=UTC), 0)


class Claimed(NamedTuple):
    """An item as its claim returned it."""

    id: int
    claim_id: UUID
    tenant_id: int
    tenant: str  # slug at enqueue
    handler: str
    dedup_key: str
    tick_id: int | None
    trigger: str
    slot: datetime | None
    enqueued_at: datetime
    not_before: datetime
    claimed_at: datetime
    attempts: int  # this one included
    failures: int  # attempts before that failed
    recoveries: int
    time_limit_s: int
    abandon: str
    retry_attempts: int
    retry_base_s: int
    retry_cap_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """How many items of which handlers to claim."""

    slow: Mapping[str, int]  # handler -> at most; in the order in which they are served
    slow_total: int  # of all slow ones together: the free slots
    fast: Mapping[str, int]  # handlers that may be prefetched -> at most
    paused_tenants: Collection[int] = ()

    def may_have_more(self, counts: Mapping[str, int]) -> list[str]:
        """Handlers that gave all they were asked for; of slow ones the total may have cut any."""
        total_reached = sum(counts.get(key, 0) for key in self.slow) >= self.slow_total
        slow = [
            k for k, n in self.slow.items() if total_reached or counts.get(k, 0) >= n
        ]
        return slow + [k for k, n in self.fast.items() if counts.get(k, 0) >= n]

    def asks(self) -> bool:
        """Whether it asks for anything."""
        return bool(self.fast or (self.slow and self.slow_total))


@dataclass(slots=True)
class Marks:
    """Where the last claim of each handler ended.

    Looking from there steps over the dead index entries that a held snapshot keeps
    in front. What goes back to pending gets a later not_before than any mark, except
    an item whose time is yet to come: hence the look from the beginning.
    """

    last: dict[str, tuple[datetime, int]] = field(default_factory=dict)
    looked_back: dict[str, float] = field(default_factory=dict)  # steady seconds
    patience: float = LOOK_BACK_S  # seconds until the next look from the beginning

    def start(self, handler: str, *, at: float) -> tuple[datetime, int]:
        """Where to look from now."""
        if at - self.looked_back.get(handler, -self.patience) >= self.patience:
            self.looked_back[handler] = at
            return _BEGINNING
        return self.last.get(handler, _BEGINNING)

    def looked(self, *, began: float, took: float) -> None:
        """A claim took so long: where it looked from the beginning, do that less often."""
        if began in self.looked_back.values():
            wanted = took / LOOK_BACK_SHARE
            self.patience = min(LOOK_BACK_MOST_S, max(LOOK_BACK_S, wanted))

    def learn(self, handler: str, *, more: bool) -> None:
        """Look from the beginning next time where nothing more was found behind the mark."""
        if not more and self.patience == LOOK_BACK_S:
            self.looked_back.pop(handler, None)


def claim(demand: Demand, *, node_id: UUID, node: str, marks: Marks) -> list[Claimed]:
    """Claim what there is of `demand`, in the order in which it became due."""
    on_postgresql = connection.vendor == "postgresql"
    take = _claim_postgresql if on_postgresql else _claim_sqlite
    got = sorted(take(demand, node_id, node, marks), key=lambda c: (c.not_before, c.id))
    counts = Counter(c.handler for c in got)
    more = set(demand.may_have_more(counts))
    for handler in (*demand.slow, *demand.fast):
        marks.learn(handler, more=handler in more)
    for claimed in got:  # in the order of what the marks compare
        marks.last[claimed.handler] = (claimed.not_before, claimed.id)
    return got


def claim_suspect(
    handlers: Sequence[str],
    *,
    node_id: UUID,
    node: str,
    paused_tenants: Collection[int],
) -> list[Claimed]:
    """Claim one item that a dead process held. Only for a process in which nothing runs."""
    if connection.vendor == "postgresql":
        params = {
            "handlers": list(handlers),
            "paused": list(paused_tenants),
            "node_id": node_id,
            "node": node,
            "now": clock.fixed(),
        }
        return wire.fetch(sql.CLAIM_SUSPECT, params, row=Claimed._make)
    due = _due(paused_tenants).filter(handler__in=handlers, recoveries__gt=0)
    with transaction.atomic():
        return _take(due, 1, node_id, node)


def suspect_due_since(
    handlers: Sequence[str], *, paused_tenants: Collection[int]
) -> datetime | None:
    """Since when the oldest suspect has been due; None where there is none."""
    due = _due(paused_tenants).filter(handler__in=handlers, recoveries__gt=0)
    return due.order_by("not_before").values_list("not_before", flat=True).first()


def _claim_postgresql(
    demand: Demand, node_id: UUID, node: str, marks: Marks
) -> list[Claimed]:
    params = {
        "node_id": node_id,
        "node": node,
        "now": clock.fixed(),
        "paused": list(demand.paused_tenants),
    }
    at = clock.steady()
    for group, limits in (("slow", demand.slow), ("fast", demand.fast)):
        starts = [marks.start(handler, at=at) for handler in limits]
        params[f"{group}_handlers"] = list(limits)
        params[f"{group}_limits"] = list(limits.values())
        params[f"{group}_from_at"] = [start[0] for start in starts]
        params[f"{group}_from_id"] = [start[1] for start in starts]
    params["slow_total"] = demand.slow_total
    params["fast_total"] = sum(demand.fast.values())
    got = wire.fetch(sql.CLAIM, params, row=Claimed._make)
    marks.looked(began=at, took=clock.steady() - at)
    return got


def _claim_sqlite(demand: Demand, node_id: UUID, node: str, _: Marks) -> list[Claimed]:
    """The same with the ORM: nobody else writes between its statements."""
    due = _due(demand.paused_tenants).filter(recoveries=0)
    if not due.filter(handler__in=[*demand.slow, *demand.fast]).exists():
        return []  # an idle worker does not take the only write lock there is
    got: list[Claimed] = []
    left = demand.slow_total
    with transaction.atomic():
        for handler, limit in demand.slow.items():
            some = _take(due.filter(handler=handler), min(limit, left), node_id, node)
            left -= len(some)
            got += some
        for handler, limit in demand.fast.items():
            got += _take(due.filter(handler=handler), limit, node_id, node)
    return got


def _due(paused_tenants: Collection[int]) -> QuerySet[WorkItem]:
    due = WorkItem.objects.pending().filter(
        not_before__lte=clock.DatabaseNow(once=True)
    )
    return due.exclude(tenant_id__in=paused_tenants) if paused_tenants else due


def _take(
    due: QuerySet[WorkItem], limit: int, node_id: UUID, node: str
) -> list[Claimed]:
    ids = list(due.order_by("not_before", "id").values_list("id", flat=True)[:limit])
    if not ids:
        return []
    now = clock.DatabaseNow()
    rows = WorkItem.objects.filter(id__in=ids)
    rows.update(
        status=WorkItem.Status.EXECUTING,
        claim_id=Func(
            function="uuid7", output_field=WorkItem._meta.get_field("claim_id")
        ),
        node_id=node_id,
        node=node,
        claimed_at=now,
        renewed_at=now,
        started_at=now,
        attempts=F("attempts") + 1,
        progress=Value(None, output_field=WorkItem._meta.get_field("progress")),
    )
    columns = [{"tenant": "tenant_slug"}.get(name, name) for name in Claimed._fields]
    return [Claimed._make(row) for row in rows.values_list(*columns)]
