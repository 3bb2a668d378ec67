"""catch_up: the rows to tick in this pass, and what each tick stands for.

Called by the ticker with the plans of a pass. Run-now requests come first, then slots.
A row that is paused is left alone; when its pause is over, what fell into it is counted
on its next tick. One that catches up slot by slot waits for the items of the slot
before, since a second item would be refused while one lives.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db.models import Q

from audit import clock
from scheduler.look import Look
from scheduler.models import Tick
from scheduler.plan import Plan, pause_of
from scheduler.slots import Due, Span, due
from scheduler.tick import FAST, OPERATOR, SLOT, Cause
from workqueue.models import Pause, WorkItem


def due_now(found: Sequence[Plan], *, seen: Look) -> Iterator[tuple[Plan, Cause]]:
    """Rows with a reason to tick. Lazy: the clock goes on while the caller ticks."""
    yield from ((plan, cause) for plan in found if (cause := _requested(plan)))
    now = clock.now()
    waiting = [
        plan
        for plan in found
        if _has_come(plan, now) and not pause_of(plan.row.key, live=seen.live, now=now)
    ]
    if not waiting:
        return
    # Nearly always empty, and one question for all rows: a pause may have ended, or
    # ended by itself, between a slot and this pass.
    pauses = _pauses_since(min(plan.since for plan in waiting), now=now)
    for plan in waiting:
        spans = [span for pause, span in pauses if pause.handler in ("", plan.row.key)]
        if (one := _due(plan, now=now, spans=spans)) and not _follows_too_soon(
            plan, now=now
        ):
            yield plan, _cause(plan, one)


def _requested(plan: Plan) -> Cause | None:
    if (asked := plan.schedule) is None or asked.run_requested_at is None:
        return None
    return Cause(
        trigger=OPERATOR,
        slot=asked.run_requested_at,
        who=asked.run_requested_by,
        why=asked.run_requested_why,
    )


def _has_come(plan: Plan, now: datetime) -> bool:
    slot = plan.next_slot
    return slot is not None and slot <= now


def _due(plan: Plan, *, now: datetime, spans: Sequence[Span]) -> Due | None:
    if plan.cadence is None:
        return None
    return due(
        plan.cadence, misfire=plan.row.misfire, since=plan.since, now=now, pauses=spans
    )


def _cause(plan: Plan, one: Due) -> Cause:
    fast = plan.cadence is not None and plan.cadence.period < FAST
    return Cause(
        trigger=SLOT,
        slot=one.slot,
        missed=one.missed,
        paused_slots=one.paused,
        fast=fast,
    )


def _pauses_since(since: datetime, *, now: datetime) -> list[tuple[Pause, Span]]:
    """Pauses of all tenants that were in force at any time since then, and are over."""
    scopes = [Pause.Scope.EVERYTHING, Pause.Scope.HANDLER]
    ended = Q(ended_at__gt=since) | Q(ended_at=None, until__gt=since)
    found = []
    for pause in Pause.objects.filter(ended, scope__in=scopes, since__lte=now):
        end = min(
            moment for moment in (pause.ended_at, pause.until) if moment is not None
        )
        if since < end <= now:
            found.append((pause, Span(start=pause.since, end=end)))
    return found


def _follows_too_soon(plan: Plan, *, now: datetime) -> bool:
    """Whether a row that ticks all its missed slots still has items of the one before.

    No longer than its interval: a tenant that takes for ever holds up nobody else.
    """
    if plan.row.misfire.rule != "all" or plan.cadence is None:
        return False
    before = Tick.objects.filter(
        handler=plan.row.key, trigger=SLOT, slot=plan.since
    ).first()
    if before is None or now - before.at >= plan.cadence.period:
        return False
    return (
        WorkItem.objects.filter(tick_id=before.pk)
        .exclude(status=WorkItem.Status.HELD)
        .exists()
    )
