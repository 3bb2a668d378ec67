"""tick: one decision to enqueue, in one transaction of the master.

Called by the ticker, and by the bootstrap for start triggers. What must stay true: the
lease is held first; the slot is taken by a conditional UPDATE and by a unique Tick, so
a master that froze and woke up ticks nothing twice; what was not enqueued is counted,
with its reason, on the same row.
"""

import logging
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError
from django.db.models import F, Q

from audit import clock
from scheduler.election import Election
from scheduler.models import Schedule, Tick
from workqueue import enqueue
from workqueue.eligible import Call
from workqueue.enqueue import Enqueued
from workqueue.live import Live
from workqueue.registry import Handler

logger = logging.getLogger(__name__)

SLOT, START, OPERATOR = Tick.Trigger.SLOT, Tick.Trigger.START, Tick.Trigger.OPERATOR
FAST = timedelta(
    seconds=10
)  # rows with a shorter cadence tick only for tenants with work


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a row is ticked."""

    trigger: str  # slot | start | operator
    slot: datetime  # the slot; the beginning of the term; the moment of the request
    missed: int = 0
    paused_slots: int = 0
    fast: bool = False  # its cadence is under FAST
    who: str = ""  # the operator
    why: str = ""


def tick(
    row: Handler, cause: Cause, *, election: Election, live: Live
) -> Enqueued | None:
    """Tick once. None: this slot, or this request, has been ticked already.

    Raises NotMaster when the term is over.
    """
    now = clock.now()
    call = Call(
        row=row,
        now=now,
        only_due=_only_due(cause, live),
        paused=live.paused_tenants(now),
    )
    try:
        with election.acting() as term:
            if not _take(row.key, cause):
                return None
            if cause.fast and not enqueue.anybody(call) and _merge(row.key, cause):
                return Enqueued()
            record = _record(row.key, cause, term=term, now=now)
            found = enqueue.enqueue_tick(
                call,
                trigger=cause.trigger,
                tick_id=record.pk,
                slot=cause.slot,
                try_last=_blocked_before(row.key, cause),
            )
            Tick.objects.filter(pk=record.pk).update(**asdict(found))
    except IntegrityError:
        if not _ticked(row.key, cause):
            raise  # the row's own: a pair without a key, for example
        # Its Tick exists although Schedule does not know: somebody set it back by SQL.
        _take_note(row.key, cause, election)
        return None
    _say(row.key, cause, found)
    return found


def _only_due(cause: Cause, live: Live) -> bool:
    """An operator who says run now means everybody."""
    return cause.trigger != OPERATOR and (
        cause.fast or live.policy.enqueue_mode == "due"
    )


def _take(key: str, cause: Cause) -> bool:
    """Take the slot, or the request. False: somebody has."""
    schedule = Schedule.objects.filter(key=key)
    if cause.trigger == SLOT:
        older = Q(last_slot=None) | Q(last_slot__lt=cause.slot)
        return schedule.filter(older).update(last_slot=cause.slot, problem="") == 1
    if cause.trigger == OPERATOR:
        mine = schedule.filter(run_requested_at=cause.slot)
        return (
            mine.update(
                run_requested_at=None,
                run_requested_by="",
                run_requested_why="",
                problem="",  # of a cadence that cannot be read the next plan says so again
            )
            == 1
        )
    return not _ticked(key, cause)


def _ticked(key: str, cause: Cause) -> bool:
    made = Tick.objects.filter(handler=key, trigger=cause.trigger, slot=cause.slot)
    return made.exists()


def _merge(key: str, cause: Cause) -> bool:
    """Count an idle tick of a fast row on the first idle one of its minute."""
    if cause.missed or cause.paused_slots:
        return False
    minute = cause.slot.replace(second=0, microsecond=0)
    idle = Tick.objects.idle().filter(
        handler=key, trigger=SLOT, slot__gte=minute, slot__lt=cause.slot
    )
    return idle.update(merged=F("merged") + 1) > 0


def _record(key: str, cause: Cause, *, term: int, now: datetime) -> Tick:
    late = max(now - cause.slot, timedelta())
    return Tick.objects.create(
        handler=key,
        trigger=cause.trigger,
        slot=cause.slot,
        at=clock.DatabaseNow(),
        term=term,
        lateness_ms=late // timedelta(milliseconds=1),
        missed=cause.missed,
        paused_slots=cause.paused_slots,
        who=cause.who,
        why=cause.why,
    )


def _blocked_before(key: str, cause: Cause) -> list[int]:
    """Tenants that the tick before this one found held: they are tried last."""
    earlier = Tick.objects.filter(handler=key, trigger=SLOT, slot__lt=cause.slot)
    return (
        earlier.order_by("-slot").values_list("blocked_tenants", flat=True).first()
        or []
    )


def _take_note(key: str, cause: Cause, election: Election) -> None:
    with election.acting():
        _take(key, cause)
    logger.warning(
        "ticked before handler=%s trigger=%s slot=%s", key, cause.trigger, cause.slot
    )


def _say(key: str, cause: Cause, found: Enqueued) -> None:
    if cause.missed or cause.paused_slots:
        logger.warning(
            "slots went by handler=%s slot=%s missed=%s paused=%s",
            key,
            cause.slot,
            cause.missed,
            cause.paused_slots,
        )
    if held := found.blocked_tenants:
        logger.warning(
            "tenants left out, somebody's transaction holds them handler=%s slot=%s blocked=%s tenants=%s",
            key,
            cause.slot,
            len(held),
            held[:10],
        )
    if not_reached := found.blocked - len(held):
        logger.warning(
            "tenants left out, the database was too slow to reach them in time handler=%s slot=%s not_reached=%s",
            key,
            cause.slot,
            not_reached,
        )
    logger.info(
        "tick handler=%s trigger=%s slot=%s enqueued=%s",
        key,
        cause.trigger,
        cause.slot,
        found.enqueued,
    )
