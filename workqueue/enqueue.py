"""enqueue: a tick, or a call, -> items.

`enqueue` is for application code and joins its transaction: no item before the commit,
none after a rollback. `enqueue_tick` is the ticker's: one INSERT ... SELECT for all
tenants that a row calls, inside the master's transaction. Both leave it to the
database to refuse a second item while one lives, and both copy the row's rules onto
the item, so that it keeps the rules of the release that made it.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection
from django.db.models import Count, DateTimeField, F
from django.db.models.functions import Least

from audit import clock
from workqueue import around_locks, eligible, registry, sql, wakeup
from workqueue.eligible import Call, Compiled
from workqueue.models import Tenant, WorkItem
from workqueue.registry import Handler

logger = logging.getLogger(__name__)

LONG_TRANSACTION = 5.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What an item is made for."""

    trigger: str  # slot | start | operator | call
    tick_id: int | None = None  # None: a call
    slot: datetime | None = None  # None: a call
    not_before: datetime | None = None  # None: now


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """What came of a tick. The columns of scheduler.Tick by name."""

    enqueued: int = 0
    reruns: int = 0  # executing items asked to run once more
    still_waiting: int = 0
    still_running: int = 0
    held: int = 0
    paused: int = 0  # tenants that are paused
    blocked: int = 0  # tenants that were held, or not reached in time
    blocked_tenants: list[int] = field(default_factory=list)  # the held ones
    not_eligible: dict[str, int] = field(default_factory=dict)  # reason -> tenants


def enqueue(
    key: str,
    *,
    tenant: Tenant,
    dedup_key: str = "",
    not_before: datetime | None = None,
    trigger: str = "call",
    slot: datetime | None = None,
) -> bool:
    """Ask for one run, in the caller's transaction. False: one lives already.

    `slot`: the instant that a repeated run stands for. Raises UnknownHandler. A
    transaction that stays open holds up the ticks of this handler and tenant, hence the
    warning.
    """
    named = (sql.NAMED[connection.vendor], [tenant.id, tenant.slug, dedup_key])
    row = registry.row(key)
    origin = Origin(trigger=trigger, slot=slot, not_before=not_before)
    text, params = _statement(row, named, origin)
    aged = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute(sql.with_age(text) if aged else text, params)
        made = bool(cursor.rowcount == 1)
        if made and aged:
            _warn_of_age(cursor.fetchone(), key=key, tenant=tenant.slug)
    if made:
        wakeup.on_commit_notify()
    return made


def enqueue_tick(
    call: Call,
    *,
    trigger: str,
    tick_id: int,
    slot: datetime,
    try_last: Sequence[int] = (),
) -> Enqueued:
    """Make an item for every tenant that is called and has none. In the caller's transaction.

    `try_last`: tenants that the tick before this one found held.
    """
    origin = Origin(trigger=trigger, tick_id=tick_id, slot=slot)
    counts = eligible.census(call)
    insert = partial(_insert, call, origin)
    everybody = partial(_ids, call)
    made = around_locks.spread(
        insert, called=counts.called, everybody=everybody, last=try_last
    )
    count, reruns = made.count, 0
    if trigger == "operator":
        reruns = _ask_again(call)
        # What finished between the INSERT and the marks has neither an item nor a mark.
        # They are few beside those for whom the first had no time already.
        if not made.not_reached:
            count += insert(without=made.held)
    found = (
        {} if _all_made(call, count, counts.called) else _live(call, tick_id=tick_id)
    )
    if count or reruns:
        wakeup.on_commit_notify()
    return Enqueued(
        enqueued=count,
        reruns=reruns,
        still_waiting=found.get(WorkItem.Status.PENDING, 0),
        still_running=max(0, found.get(WorkItem.Status.EXECUTING, 0) - reruns),
        held=found.get(WorkItem.Status.HELD, 0),
        paused=counts.paused,
        blocked=len(made.held) + made.not_reached,
        blocked_tenants=made.held,
        not_eligible=counts.not_eligible,
    )


def anybody(call: Call) -> bool:
    """Whether a tick would call anybody: what decides that a fast row is idle."""
    return eligible.tenants(call).exists()


def _insert(
    call: Call,
    origin: Origin,
    *,
    only: Collection[int] | None = None,
    without: Collection[int] = (),
) -> int:
    found = eligible.candidates(call, only=only, without=without)
    if found is None:
        return 0
    text, params = _statement(call.row, found, origin)
    with connection.cursor() as cursor:
        cursor.execute(text, params)
        return int(cursor.rowcount)


def _statement(row: Handler, found: Compiled, origin: Origin) -> Compiled:
    """The INSERT, and its parameters in the order of its columns."""
    candidates, params = found
    now = _adapted(clock.fixed())
    rules = [
        int(row.time_limit.total_seconds()),
        row.abandon,
        row.retry.attempts,
        int(row.retry.base.total_seconds()),
        int(row.retry.cap.total_seconds()),
    ]
    columns = [row.key, _adapted(origin.not_before), origin.tick_id, origin.trigger]
    values = [now, *params, *columns, _adapted(origin.slot), *rules]
    return sql.ENQUEUE[connection.vendor].format(candidates=candidates), values


def _adapted(moment: datetime | None) -> Any:
    """As the database keeps it: SQLite has texts."""
    return connection.ops.adapt_datetimefield_value(moment) if moment else None


def _ids(call: Call) -> list[int]:
    return list(eligible.tenants(call).order_by("id").values_list("id", flat=True))


def _ask_again(call: Call) -> int:
    """Run now, where an item lives: mark what executes, bring forward what waits for later."""
    items = eligible.live_items(call).exclude(status=WorkItem.Status.HELD)
    # In the order of ids, and waiting for a finish in progress: its item is gone then,
    # and the second INSERT makes a new one.
    ids = list(
        items.select_for_update(of=("self",))
        .order_by("id")
        .values_list("id", flat=True)
    )
    locked = WorkItem.objects.filter(id__in=ids)
    now = clock.DatabaseNow()
    locked.pending().update(
        not_before=Least(F("not_before"), now, output_field=DateTimeField())
    )
    return locked.executing().update(rerun=True)


def _all_made(call: Call, count: int, called: int) -> bool:
    """Nobody can have had an item already, so there is nothing to count."""
    return count == called and not call.only_due and not call.takes_pairs


def _live(call: Call, *, tick_id: int) -> dict[str, int]:
    """Items that lived before this tick, by status."""
    before = eligible.live_items(call).exclude(tick_id=tick_id)
    return dict(before.order_by().values_list("status").annotate(n=Count("id")))


def _warn_of_age(returned: tuple[float], *, key: str, tenant: str) -> None:
    if returned[0] > LONG_TRANSACTION:
        logger.warning(
            "enqueue handler=%s tenant=%s in a transaction that has been open for %.1f s: until it ends, "
            "ticks of this handler leave this tenant out",
            key,
            tenant,
            returned[0],
        )
