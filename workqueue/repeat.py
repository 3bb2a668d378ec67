"""repeat: runs that ended badly -> their items, enqueued again by an operator.

A finished item is gone from the queue; its run says which it was. The database keeps
a second one out while one lives, so nothing is looked up before it is tried. One
row's refusal never stops the others.
"""

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from audit import clock, ledger, queries
from audit.rows import RunRow
from workqueue import operate, registry
from workqueue.enqueue import enqueue
from workqueue.models import Tenant, WorkItem
from workqueue.operate import Result

REPEATED = ("failed", "partial", "abandoned", "cancelled")  # outcomes
BAD = REPEATED[:3]  # those that are no operator's own wish
LIVING = {
    WorkItem.Status.PENDING: "waits",
    WorkItem.Status.EXECUTING: "executes",
    WorkItem.Status.HELD: "is held",
}


def repeat(
    claim_ids: Iterable[UUID],
    *,
    who: str,
    origin: str,
    why: str,
    tenants: frozenset[int] | None,
) -> list[Result]:
    """Enqueue each run's item again; what cannot be is refused with a sentence."""
    results = []
    for claim_id in claim_ids:
        run = queries.run(claim_id, tenants=tenants)
        refusal = _refusal(run)
        if run is None or refusal:
            results.append(Result(target=claim_id, done=False, text=refusal))
            continue
        with transaction.atomic():
            done, text = _again(run, who=who, origin=origin, why=why)
            if done:
                ledger.change(
                    who=who,
                    origin=origin,
                    subject=f"run:{run.id} {run.handler} {run.tenant}",
                    verb="retried",
                    new={"result": text},
                    why=why,
                    tenant_id=run.tenant_id,
                )
        results.append(Result(target=claim_id, done=done, text=text))
    return results


def _refusal(run: RunRow | None) -> str:
    """Why it is not enqueued again; "" where nothing stands against it."""
    if run is None:
        return "this run is no longer kept"
    if run.kind != "item":
        return "it was a job: submit it again"
    if run.outcome not in REPEATED:
        return f"it {run.outcome}: there is nothing to retry"
    if run.handler not in registry.rows():
        return "no row of the timetable has its handler any more"
    tenant = Tenant.objects.filter(pk=run.tenant_id)
    if not tenant.exists():
        return "its tenant was removed"
    now = clock.now()
    for condition in registry.row(run.handler).eligible:
        if not tenant.filter(condition.holds(now)).exists():
            return f"its tenant is not eligible: {condition.reason}"
    return ""


def _again(run: RunRow, *, who: str, origin: str, why: str) -> tuple[bool, str]:
    """Whether it is in the queue because of this, and what there is to say."""
    tenant = Tenant.objects.get(pk=run.tenant_id)
    made = enqueue(
        run.handler,
        tenant=tenant,
        dedup_key=run.dedup_key,
        trigger="operator",
        slot=run.slot,
    )
    item = WorkItem.objects.filter(
        tenant=tenant, handler=run.handler, dedup_key=run.dedup_key
    ).first()
    if item is None:  # it finished in this moment
        return made, "it was enqueued" if made else "an item of it has just finished"
    if made:
        return True, f"enqueued as item {item.pk}"
    if item.status == WorkItem.Status.HELD:
        released = operate.release(
            [item.pk], who=who, origin=origin, why=why, tenants=None
        )
        if released[0].done:
            return True, f"item {item.pk} was held and is released"
    return False, f"item {item.pk} of it {LIVING[WorkItem.Status(item.status)]} already"
