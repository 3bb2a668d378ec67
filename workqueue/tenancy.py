"""tenancy: who sees which tenant, and how tenants come and go.

Everything that lists rows asks `scope` once and filters by tenant id. A tenant is
removed by one verb, which first records what was live as cancelled: the ledger keeps
ids and slugs as plain values and outlives it.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from audit import clock, ledger, text
from workqueue.ended import run_of
from workqueue.exceptions import InvalidValues, PlatformStays, StillNeeded
from workqueue.models import Membership, Tenant, WorkItem

BATCH = 1000  # items recorded at a time


def scope(user: Any) -> frozenset[int] | None:
    """The ids of the tenants that a user sees; None: all of them, future ones too.

    All are seen by superusers and by members of the platform tenant. Somebody who is
    not signed in, or was deactivated, sees none.
    """
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return None
    mine = Membership.objects.filter(user_id=user.pk)
    rows = list(mine.values_list("tenant_id", "tenant__is_platform"))
    return (
        None
        if any(is_platform for _, is_platform in rows)
        else frozenset(id for id, _ in rows)
    )


def platform() -> Tenant:
    """The tenant that stands for the platform; a migration made it."""
    return Tenant.objects.get(is_platform=True)


def slug_taken(slug: str, *, but: int | None = None) -> str:
    """Which tenant has this slug, as a sentence; "": none, or the one with the id `but`."""
    # Folders are named after it, and not every disk tells cases apart.
    twins = Tenant.objects.filter(slug__iexact=slug)
    twin = next((each for each in twins if each.pk != but), None)
    return f"There is a tenant {twin.slug!r} already." if twin else ""


def create(
    *,
    slug: str,
    name: str,
    who: str,
    origin: str,
    why: str = "",
    time_zone: str = "UTC",
    modules: Iterable[str] = (),
    licence_expires_at: datetime | None = None,
) -> Tenant:
    """Make a tenant. Raises InvalidValues with a sentence per field."""
    row = Tenant(
        slug=slug.strip(),
        name=text.gate(" ".join(name.split())),
        time_zone=time_zone.strip(),
        modules=sorted({text.gate(each) for each in modules}),
        licence_expires_at=licence_expires_at,
    )
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as problem:
        told = {key: " ".join(texts) for key, texts in problem.message_dict.items()}
        raise InvalidValues(told) from None
    if taken := slug_taken(row.slug):
        raise InvalidValues({"slug": taken})
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _tell(
                row, verb="created", who=who, origin=origin, why=why, new=as_values(row)
            )
    except IntegrityError:
        raise InvalidValues(
            {"slug": f"There is a tenant {row.slug!r} already."}
        ) from None
    return row


# What apps above know of a tenant: "" or the sentence that says what has to be ended first.
KEEPERS: list[Callable[[Tenant], str]] = []


def keep_while(says: Callable[[Tenant], str]) -> None:
    """Let no tenant be removed while this says why not. For an app's `ready`."""
    if says not in KEEPERS:
        KEEPERS.append(says)


def keeps(tenant: Tenant) -> str:
    """Why the tenant cannot be removed yet; "": it can."""
    return " ".join(filter(None, (says(tenant) for says in KEEPERS)))


def remove(tenant: Tenant, *, who: str, origin: str, why: str) -> int:
    """Remove a tenant with its memberships and pauses; return the items cancelled.

    One that is being run keeps running; its result then counts as late. Raises
    PlatformStays, and StillNeeded with what has to be ended first.
    """
    if tenant.is_platform:
        raise PlatformStays
    if reason := keeps(tenant):
        raise StillNeeded(reason)
    reason = f"its tenant was removed by {who}: {why}"
    # Nobody enqueues for it any more, before its items are counted.
    Tenant.objects.filter(pk=tenant.pk).update(is_active=False)
    with transaction.atomic():
        row = Tenant.objects.select_for_update().get(pk=tenant.pk)
        cancelled = _cancel_items(row, reason=reason)
        _tell(row, verb="removed", who=who, origin=origin, why=why, old=as_values(row))
        row.delete()
    # What a tick inserted that had looked at the tenants before.
    with transaction.atomic():
        return cancelled + _cancel_items(tenant, reason=reason)


def cancel_orphans() -> int:
    """Cancel waiting items whose tenant is gone: a tick that had seen it committed later."""
    there = Tenant.objects.filter(pk=OuterRef("tenant_id"))
    orphans = WorkItem.objects.exclude(status=WorkItem.Status.EXECUTING).exclude(
        Exists(there)
    )
    if not orphans.exists():
        return 0  # looking takes no lock
    with transaction.atomic():
        return _cancel(orphans, reason="its tenant was removed")


def _cancel_items(tenant: Tenant, *, reason: str) -> int:
    return _cancel(WorkItem.objects.filter(tenant_id=tenant.pk), reason=reason)


def _cancel(items_of: QuerySet[WorkItem], *, reason: str) -> int:
    count, now = 0, clock.now()
    live = items_of.order_by("id")
    while items := list(live.select_for_update(of=("self",))[:BATCH]):
        ledger.record(
            [
                run_of(item, outcome="cancelled", now=now, summary=reason)
                for item in items
            ],
            finish_id=clock.uuid7(),
        )
        WorkItem.objects.filter(pk__in=[item.pk for item in items]).delete()
        count += len(items)
    return count


def as_values(row: Tenant) -> dict[str, Any]:
    """What a tenant is made of, as JSON can hold it."""
    expires = row.licence_expires_at
    return {
        "slug": row.slug,
        "name": row.name,
        "time_zone": row.time_zone,
        "modules": row.modules,
        "licence_expires_at": expires.isoformat() if expires else None,
    }


def _tell(
    row: Tenant,
    *,
    verb: str,
    who: str,
    origin: str,
    why: str,
    old: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
) -> None:
    """The change, and the event for whoever keeps records per tenant."""
    subject = f"tenant:{row.slug}"
    ledger.change(
        who=who,
        origin=origin,
        subject=subject,
        verb=verb,
        old=old,
        new=new,
        why=why,
        tenant_id=row.pk,
    )
    ledger.event(
        type=f"tenant.{verb}",
        tenant_id=row.pk,
        tenant=row.slug,
        subject=subject,
        data=old or new or {},
    )
