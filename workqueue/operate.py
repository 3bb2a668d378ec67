"""What an operator does to items: cancel, retry, release, drop. One row's refusal never stops the others."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.db import transaction

from audit import clock, ledger
from workqueue import wakeup
from workqueue.ended import run_of
from workqueue.finish import RETURNED
from workqueue.models import WorkItem

GONE = "it is no longer in the queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one row."""

    target: int | UUID  # an item's id, or a run's
    done: bool
    text: str  # a sentence for the operator


def cancel(
    item_ids: Iterable[int],
    *,
    who: str,
    origin: str,
    why: str,
    tenants: frozenset[int] | None,
) -> list[Result]:
    """End waiting and executing items; each gets its Run, outcome cancelled.

    What an executing one has committed stays; its handler meets ClaimLost at its next
    query, and its result, when it comes, is kept as a late one.
    """

    def act(item: WorkItem) -> str | None:
        if item.status == WorkItem.Status.HELD:
            return None
        _record(item, by=f"cancelled by {who}", why=why)
        item.delete()
        return "cancelled"

    return _each(
        item_ids,
        act,
        verb="cancelled",
        who=who,
        origin=origin,
        why=why,
        tenants=tenants,
        refusal="it is held: release or drop it",
    )


def retry(
    item_ids: Iterable[int],
    *,
    who: str,
    origin: str,
    why: str,
    tenants: frozenset[int] | None,
) -> list[Result]:
    """Let waiting items that were put off be claimed at once, without waiting for their time."""

    def act(item: WorkItem) -> str | None:
        later = WorkItem.objects.pending().filter(
            pk=item.pk, not_before__gt=clock.DatabaseNow(once=True)
        )
        return "due now" if later.update(not_before=clock.DatabaseNow()) else None

    return _each(
        item_ids,
        act,
        verb="retried",
        who=who,
        origin=origin,
        why=why,
        tenants=tenants,
        refusal="it does not wait for its next attempt",
    )


def release(
    item_ids: Iterable[int],
    *,
    who: str,
    origin: str,
    why: str,
    tenants: frozenset[int] | None,
) -> list[Result]:
    """Let workers have held items again, with a clean slate of recoveries."""

    def act(item: WorkItem) -> str | None:
        held = WorkItem.objects.held().filter(pk=item.pk)
        released = held.update(
            **RETURNED,
            not_before=clock.DatabaseNow(),
            recoveries=0,
            failures=0,
            held_reason="",
        )
        return "released" if released else None

    return _each(
        item_ids,
        act,
        verb="released",
        who=who,
        origin=origin,
        why=why,
        tenants=tenants,
        refusal="it is not held",
    )


def drop(
    item_ids: Iterable[int],
    *,
    who: str,
    origin: str,
    why: str,
    tenants: frozenset[int] | None,
) -> list[Result]:
    """Delete held items; each gets a Run, outcome cancelled, so that nothing vanishes."""

    def act(item: WorkItem) -> str | None:
        if item.status != WorkItem.Status.HELD:
            return None
        _record(item, by=f"dropped by {who}", why=why)
        item.delete()
        return "dropped"

    return _each(
        item_ids,
        act,
        verb="dropped",
        who=who,
        origin=origin,
        why=why,
        tenants=tenants,
        refusal="it is not held: cancel it instead",
    )


def _each(
    item_ids: Iterable[int],
    act: Callable[[WorkItem], str | None],
    *,
    verb: str,
    who: str,
    origin: str,
    why: str,
    tenants: frozenset[int] | None,
    refusal: str,
) -> list[Result]:
    results = []
    for item_id in item_ids:
        with transaction.atomic():
            item = WorkItem.objects.select_for_update().filter(pk=item_id).first()
            if item is None or (tenants is not None and item.tenant_id not in tenants):
                results.append(Result(target=item_id, done=False, text=GONE))
                continue
            name, before = (
                f"item:{item.pk} {item.handler} {item.tenant_slug}",
                item.status,
            )
            if (done := act(item)) is None:
                results.append(Result(target=item_id, done=False, text=refusal))
                continue
            ledger.change(
                who=who,
                origin=origin,
                subject=name,
                verb=verb,
                old={"status": before},
                new={"status": done},
                why=why,
                tenant_id=item.tenant_id,
            )
        results.append(Result(target=item_id, done=True, text=done))
    if any(result.done for result in results):
        wakeup.on_commit_notify()
    return results


def _record(item: WorkItem, *, by: str, why: str) -> None:
    summary = f"{by}: {why}" if why else by
    run = run_of(item, outcome="cancelled", now=clock.now(), summary=summary)
    ledger.record([run], finish_id=uuid4())
