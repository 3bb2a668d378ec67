"""waiting: why an item is not running, in one sentence per item.

The causes are looked at in the order in which they hold everything up, and the first
that applies is said. Two queries for a whole list: what is in force, and who works.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from audit import words
from workqueue import live, registry
from workqueue.live import Live, PauseRow
from workqueue.models import Node, WorkItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The worker processes alive, as far as waiting depends on them."""

    count: int
    slots: int  # offered by all of them
    busy: int
    handlers: frozenset[str] | None  # known to any of them; None: not all have said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What every item's wait is explained from."""

    now: datetime
    live: Live
    workers: Workers


def facts(now: datetime) -> Facts:
    """Look once, for a whole page."""
    running = Node.objects.filter(kind=Node.Kind.WORKER, status=Node.Status.RUNNING)
    reports = list(running.values_list("report", flat=True))
    return Facts(now=now, live=live.refresh(), workers=_workers(reports))


def why(item: WorkItem, facts: Facts) -> str:
    """A sentence on where the item stands: what it waits for, who has it, what holds it."""
    if item.status == WorkItem.Status.HELD:
        reason = item.held_reason.rstrip(".") or "its row of the timetable says so"
        return f"Held: {reason}. Release it to run it again, or drop it."
    if item.status == WorkItem.Status.EXECUTING:
        beat = (
            f", claim renewed {words.ago(item.renewed_at, facts.now)}"
            if item.renewed_at
            else ""
        )
        return f"Executing on {item.node or 'a worker'}{beat}."
    return (
        _stopped(item, facts)
        or _later(item, facts)
        or _nobody(item, facts)
        or _soon(item, facts)
    )


def _stopped(item: WorkItem, facts: Facts) -> str:
    """What an operator stopped."""
    if not facts.live.policy.start_workers:
        return "Waits because START_WORKERS_ON_MASTER is off: no worker runs anything."
    pause = facts.live.paused(item.handler, item.tenant_id, facts.now)
    return f"Waits because {paused(pause, facts.now)}." if pause else ""


def paused(pause: PauseRow, now: datetime) -> str:
    """'Notification Handler is paused until 16:00: “reason”'."""
    what = {
        "everything": "everything",
        "tenant": f"tenant {pause.tenant}",
    }.get(pause.scope) or registry.title(pause.handler)
    until = (
        f"until {words.day_and_time(pause.until, now)}"
        if pause.until
        else "without an end"
    )
    return f"{what} is paused {until}: “{pause.reason}”"


def _later(item: WorkItem, facts: Facts) -> str:
    """What its own time says."""
    if item.not_before <= facts.now:
        return ""
    wait = words.duration(item.not_before - facts.now)
    if item.failures:
        return f"Waits {wait} before it is tried again: attempt {item.attempts} failed."
    return f"Waits until its time comes, in {wait}."


def _nobody(item: WorkItem, facts: Facts) -> str:
    """Nobody there who could take it."""
    if not facts.workers.count:
        return "Waits because no worker process is running. Start one: manage.py runworker, or a container in mode worker."
    if (
        facts.workers.handlers is not None
        and item.handler not in facts.workers.handlers
    ):
        return "Waits because no running worker knows this handler. Its release is not deployed (yet, or any more)."
    return ""


def _soon(item: WorkItem, facts: Facts) -> str:
    """Somebody will."""
    workers = facts.workers
    if item.recoveries:
        times = words.plural(item.recoveries, "worker")
        return f"Waits to run alone: {times} stopped while running it, so one takes it when nothing else runs there."
    if workers.busy >= workers.slots > 0:
        return f"Waits because all {words.plural(workers.slots, 'slot')} of {words.plural(workers.count, 'worker')} are busy."
    return f"Waits for the next look of a worker, in {words.duration(facts.live.policy.poll_interval)} at most."


def _workers(reports: Sequence[Any]) -> Workers:
    said = [report for report in reports if isinstance(report, dict)]
    slots = [
        report["slots"] for report in said if isinstance(report.get("slots"), dict)
    ]
    known = [
        report["handlers"]
        for report in said
        if isinstance(report.get("handlers"), list)
    ]
    return Workers(
        count=len(reports),
        slots=sum(_number(one.get("used")) for one in slots),
        busy=sum(_number(report.get("in_flight")) for report in said),
        handlers=frozenset(str(key) for keys in known for key in keys)
        if len(known) == len(reports)
        else None,
    )


def _number(value: object) -> int:
    """A count of a report, whatever stands there."""
    return value if isinstance(value, int) else 0
