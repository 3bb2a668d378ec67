"""why: why a handler ran, did not run, or waits, for one tenant, in sentences.

Read by the command `why` and by the screens. Reasons come first, the heaviest first;
after them the facts: the next slot, the last tick, the last run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from audit import clock, queries, words
from scheduler.look import Look, look
from scheduler.models import Tick
from scheduler.plan import Plan, pause_of, plan
from scheduler.tick import FAST
from workqueue import registry
from workqueue.live import PauseRow
from workqueue.models import Node, Tenant, WorkItem
from workqueue.registry import Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason, or one fact."""

    code: str  # for programs: "paused", "not_eligible", "executing", "next_slot" ...
    text: str  # a sentence
    reason: bool = False  # it keeps the handler from running, or delays it


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and what one look saw."""

    row: Handler
    tenant: Tenant
    now: datetime
    seen: Look
    plan: Plan


def explain(key: str, *, tenant: Tenant) -> list[Finding]:
    """All that can be said about a handler and a tenant. Raises UnknownHandler."""
    row = registry.row(key)
    seen = look()
    now = clock.now()
    asked = Question(
        row=row,
        tenant=tenant,
        now=now,
        seen=seen,
        plan=plan(row, seen.schedules.get(key), now=now),
    )
    answers: list[Callable[[Question], Iterator[Finding]]] = [
        _scope,
        _eligible,
        _paused,
        _items,
        _workers,
        _master,
        _problem,
        _nothing_due,
        _blocked,
        _requested,
        _next_slot,
        _last_tick,
        _last_run,
    ]
    found = [finding for answer in answers for finding in answer(asked)]
    return sorted(found, key=lambda finding: not finding.reason)


# --- reasons


def _scope(asked: Question) -> Iterator[Finding]:
    if asked.row.scope == "platform" and not asked.tenant.is_platform:
        yield _reason(
            "platform_scope",
            f"{asked.row.title} runs once for the whole platform, never for a single tenant.",
        )
    elif asked.row.scope != "tenant" and asked.row.scope != "platform":
        yield _fact(
            "pairs_scope",
            f"{asked.row.title} runs once per pair that {asked.row.scope} gives, not once per tenant.",
        )


def _eligible(asked: Question) -> Iterator[Finding]:
    me = Tenant.objects.filter(pk=asked.tenant.pk)
    for condition in asked.row.eligible:
        where = ""
        if condition.setting:
            unmet, where = _not_set(condition.setting, asked)
        else:
            unmet = not me.filter(condition.holds(asked.now)).exists()
        if unmet:
            yield _reason(
                "not_eligible",
                f"{asked.tenant.slug} is not eligible: {condition.reason}{where}.",
            )
            return


def _not_set(name: str, asked: Question) -> tuple[bool, str]:
    """Whether a setting is missing, and where: the master's environment is what counts."""
    lease = asked.seen.lease
    holder = None if lease.free else lease.holder
    master = Node.objects.filter(pk=holder).first() if holder else None
    told = _report(master).get("not_set") if master else None
    if isinstance(told, list):
        return name in told, f" where the master runs ({lease.node})"
    own = " in the environment of this command; no master tells what it has in its own"
    return not getattr(settings, name), own


def _paused(asked: Question) -> Iterator[Finding]:
    for pause in filter(None, _pauses(asked)):
        yield _reason(
            "paused",
            f"{_what(pause, asked)} is paused {_until(pause, asked)}, by {pause.who}: “{pause.reason}”.",
        )


def _pauses(asked: Question) -> tuple[PauseRow | None, PauseRow | None]:
    """Of the handler or everything, and of the tenant."""
    live = asked.seen.live
    of_tenant = (
        one
        for one in live.pauses
        if one.tenant_id == asked.tenant.pk and one.holds(asked.now)
    )
    return pause_of(asked.row.key, live=live, now=asked.now), next(of_tenant, None)


def _items(asked: Question) -> Iterator[Finding]:
    items = WorkItem.objects.filter(handler=asked.row.key, tenant_id=asked.tenant.pk)
    for item in items.order_by("enqueued_at")[:10]:
        name = f" ({item.dedup_key})" if item.dedup_key else ""
        if item.status == WorkItem.Status.HELD:
            why = item.held_reason or "an operator must look at it"
            yield _reason(
                "held",
                f"Its item{name} is held: {why}. No other is enqueued until it is released or dropped.",
            )
        elif item.status == WorkItem.Status.EXECUTING:
            since = item.started_at or item.claimed_at
            yield _reason(
                "executing",
                f"It still runs{name}, {_since(since, asked)}, on {item.node}. A tick enqueues no second item meanwhile.",
            )
        elif item.not_before > asked.now:
            left = words.duration(item.not_before - asked.now)
            said = f" after: {item.last_error}" if item.last_error else ""
            yield _reason(
                "waits_for_time", f"Its item{name} waits for another {left}{said}."
            )
        else:
            paused = any(_pauses(asked))
            what = "the end of the pause" if paused else "a worker"
            yield _reason(
                "waiting",
                f"Its item{name} waits for {what}, enqueued {words.ago(item.enqueued_at, asked.now)}.",
            )


def _workers(asked: Question) -> Iterator[Finding]:
    if not asked.seen.live.policy.start_workers:
        yield _reason(
            "workers_off", "START_WORKERS_ON_MASTER is off: no worker claims anything."
        )
    alive = list(Node.objects.alive().filter(kind=Node.Kind.WORKER))
    if not alive:
        yield _reason(
            "no_worker",
            "No worker is alive. Start one: manage.py runworker, or a container with FALCON_MODE=worker.",
        )
    elif not any(asked.row.key in _handlers(node) for node in alive):
        count = words.plural(len(alive), "live worker")
        yield _reason(
            "unknown_to_workers",
            f"None of {count} knows this handler: they run another release. Its items stay pending.",
        )


def _master(asked: Question) -> Iterator[Finding]:
    lease = asked.seen.lease
    if not lease.free:
        yield _fact("master", f"Master is {lease.node}, term {lease.term:,}.")
        return
    servers = Node.objects.alive().filter(kind=Node.Kind.SERVER).count()
    last = (
        f"; the last was {lease.node}, {_until_when(lease.expires_at, asked)}"
        if lease.node
        else ""
    )
    yield _reason(
        "no_master",
        f"There is no master, so nothing ticks{last}. {words.plural(servers, 'server node')} alive.",
    )


def _problem(asked: Question) -> Iterator[Finding]:
    if asked.plan.problem:
        yield _reason("problem", f"It does not tick as it should: {asked.plan.problem}")


def _nothing_due(asked: Question) -> Iterator[Finding]:
    fast = asked.plan.cadence is not None and asked.plan.cadence.period < FAST
    probe = registry.due(asked.row.key)
    if probe is None or not (fast or asked.seen.live.policy.enqueue_mode == "due"):
        return
    found = probe(asked.now)
    if asked.row.scope == "platform":
        works = found.exists()
    else:
        works = Tenant.objects.filter(pk=asked.tenant.pk, id__in=found).exists()
    if not works:
        because = "its cadence is under 10 s" if fast else "ENQUEUE_MODE is due"
        yield _reason(
            "nothing_due",
            f"It has nothing to do now, and {because}: a tick enqueues only where there is work.",
        )


def _blocked(asked: Question) -> Iterator[Finding]:
    last = Tick.objects.newest(asked.row.key)
    if last is None:
        return
    if asked.tenant.pk in last.blocked_tenants:
        yield _reason(
            "blocked",
            f"The last tick left {asked.tenant.slug} out: an open transaction holds its item. It is tried again at the next tick.",
        )
    elif last.not_reached and not _has_its_item(asked, of=last):
        yield _reason(
            "not_reached",
            f"The last tick left {words.plural(last.not_reached, 'tenant')} out, probably {asked.tenant.slug} among them: "
            "the database was too slow to reach them in time. The next tick tries them in another order.",
        )


def _has_its_item(asked: Question, *, of: Tick) -> bool:
    """Whether an item lives, or has run since that tick."""
    items = WorkItem.objects.filter(handler=asked.row.key, tenant_id=asked.tenant.pk)
    run = queries.last_run(asked.row.key, tenant_id=asked.tenant.pk)
    return items.exists() or (run is not None and run.enqueued_at >= of.at)


# --- facts


def _requested(asked: Question) -> Iterator[Finding]:
    schedule = asked.plan.schedule
    if schedule and schedule.run_requested_at:
        yield _fact(
            "run_requested",
            f"Run now was asked for {words.ago(schedule.run_requested_at, asked.now)} by {schedule.run_requested_by}; the master has not come to it yet.",
        )


def _next_slot(asked: Question) -> Iterator[Finding]:
    made = asked.plan.cadence
    if made is None:
        if not asked.plan.problem:
            yield _fact("on_demand", "It has no cadence: it runs on demand only.")
        return
    slot = asked.plan.next_slot
    if slot is None:
        yield _fact("no_slot", f"It has no further slot ({made.words}).")
    elif slot > asked.now:
        yield _fact(
            "next_slot",
            f"{made.words}; next {slot:%Y-%m-%d %H:%M:%S} UTC, in {words.duration(slot - asked.now)}.",
        )
    else:
        yield _fact(
            "slot_due",
            f"{made.words}; the slot of {slot:%Y-%m-%d %H:%M:%S} UTC is due.",
        )


def _last_tick(asked: Question) -> Iterator[Finding]:
    last = Tick.objects.newest(asked.row.key)
    if last is None:
        yield _fact("never_ticked", "It has not been ticked within the last 7 days.")
        return
    counts = {
        "enqueued": last.enqueued,
        "still waiting": last.still_waiting,
        "still running": last.still_running,
        "asked to run again": last.reruns,
        "held": last.held,
        "paused": last.paused,
        "blocked": len(last.blocked_tenants),
        "not reached": last.not_reached,
        **last.not_eligible,
    }
    said = (
        ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        or "nothing to enqueue"
    )
    more = (
        f"; it stood for {words.plural(last.missed, 'missed slot')} too"
        if last.missed
        else ""
    )
    yield _fact(
        "last_tick",
        f"Last tick {words.ago(last.at, asked.now)} ({last.get_trigger_display().lower()}): {said}{more}.",
    )


def _last_run(asked: Question) -> Iterator[Finding]:
    last = queries.last_run(asked.row.key, tenant_id=asked.tenant.pk)
    if last is None:
        yield _fact("never_ran", f"There is no finished run for {asked.tenant.slug}.")
        return
    said = last.error or last.summary
    text = f"Last run {last.outcome} {words.ago(last.finished_at, asked.now)}" + (
        f": {said}" if said else ""
    )
    yield _fact("last_run", text if text.endswith(".") else f"{text}.")


# --- words


def _reason(code: str, text: str) -> Finding:
    return Finding(code=code, text=text, reason=True)


def _fact(code: str, text: str) -> Finding:
    return Finding(code=code, text=text)


def _report(node: Node) -> dict[str, Any]:
    return node.report if isinstance(node.report, dict) else {}


def _handlers(node: Node) -> list[str]:
    return _report(node).get("handlers") or []


def _what(pause: PauseRow, asked: Question) -> str:
    if pause.scope == "everything":
        return "Everything"
    return asked.row.title if pause.scope == "handler" else f"Tenant {pause.tenant}"


def _until(pause: PauseRow, asked: Question) -> str:
    if pause.until is None:
        return f"since {pause.since:%Y-%m-%d %H:%M} UTC"
    left = words.duration(pause.until - asked.now)
    return f"until {pause.until:%Y-%m-%d %H:%M} UTC, for another {left}"


def _since(moment: datetime | None, asked: Question) -> str:
    return f"for {words.duration(asked.now - moment)}" if moment else "for some time"


def _until_when(moment: datetime | None, asked: Question) -> str:
    return f"until {words.ago(moment, asked.now)}" if moment else "some time ago"
