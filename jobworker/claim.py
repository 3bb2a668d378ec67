"""claim: one pending job -> this process, by one conditional UPDATE.

The row count is the lock: whoever's UPDATE changed the row has the job, on PostgreSQL
and SQLite alike. Which job: of the tenants that have one that fits, the tenant whose
last claim in that tier is longest ago; of that tenant the highest priority, then the
oldest.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, Max, Min, OuterRef, QuerySet, Subquery

from audit import clock
from jobworker import sql
from jobworker.models import Job
from workqueue.connections import end_if_frozen
from workqueue.node import Me

AT_ONCE = 20  # candidates that others may take before we look again


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """What may be claimed now."""

    tiers: Collection[str]  # with room
    types: Collection[str]  # known here and paused by nobody
    paused_tenants: Collection[int] = ()


def claim(fits: Fits, *, claim_id: UUID, me: Me, version: int) -> Job | None:
    """Claim the job whose turn it is. None: nothing fits, or the caps have a newer version.

    `version`: of the caps that `fits` was made by. Where this raises, the reply may have
    been lost behind a claim that was made: `give_back([claim_id])` before the next.
    """
    for _ in range(AT_ONCE):
        job = candidate(fits)
        if job is None:
            return None
        if _take(job.id, claim_id, me=me, version=version):
            return Job.objects.get(id=job.id, claim_id=claim_id)
    return None


def candidate(fits: Fits) -> Job | None:
    """The job whose turn it is."""
    waiting = fitting(fits)
    # Ordered in Python: few tenants wait at once, and NULLS FIRST with three keys is no
    # better in SQL.
    turns = list(
        waiting.order_by()
        .values("tenant_id", "tier")
        .annotate(
            last=Subquery(_claims_of_tenant_in_tier()),
            priority_max=Max("priority"),
            oldest=Min("created_at"),
        )
    )
    if not turns:
        return None
    first = min(turns, key=_turn)
    mine = waiting.filter(tenant_id=first["tenant_id"], tier=first["tier"])
    return mine.order_by("-priority", "created_at", "id").first()


def fitting(fits: Fits) -> QuerySet[Job]:
    """Pending jobs that may be claimed now: known, not paused, with room, no peer running."""
    peer = Job.objects.running().filter(exclusive=OuterRef("exclusive"))
    waiting = Job.objects.pending().filter(tier__in=fits.tiers, type__in=fits.types)
    if fits.paused_tenants:
        waiting = waiting.exclude(tenant_id__in=fits.paused_tenants)
    return waiting.exclude(Exists(peer.exclude(exclusive="")))


def give_back(claims: Collection[UUID]) -> int:
    """Return claims that never began here."""
    mine = Job.objects.running().filter(claim_id__in=claims)
    return mine.update(
        status=Job.Status.PENDING,
        claim_id=None,
        node_id=None,
        node="",
        claimed_at=None,
        started_at=None,
        heartbeat_at=None,
        progress_at=None,
    )


def still_held(claims: Collection[UUID]) -> set[UUID]:
    """Those of the claims that hold, which nobody can end before the caller's transaction does.

    One whose row somebody else writes at this moment is left out: ask again later.
    """
    end_if_frozen()
    mine = Job.objects.running().filter(claim_id__in=claims)
    # Left out and not waited for: the beat writes the same rows in an order of its own.
    locked = mine.select_for_update(no_key=True, skip_locked=True)
    return {claim for claim in locked.values_list("claim_id", flat=True) if claim}


def _take(id: UUID, claim_id: UUID, *, me: Me, version: int) -> bool:
    uuid = Job._meta.pk.get_db_prep_value
    fixed = clock.fixed()
    params = {
        "id": uuid(id, connection),
        "claim_id": uuid(claim_id, connection),
        "node_id": uuid(me.id, connection),
        "node": me.name,
        "now": connection.ops.adapt_datetimefield_value(fixed) if fixed else None,
        "version": version,
    }
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.CLAIM, params)
            return bool(cursor.rowcount == 1)
    except IntegrityError:
        return False  # another worker began the group's job at the same moment


def _claims_of_tenant_in_tier() -> QuerySet[Job, datetime | None]:
    theirs = Job.objects.filter(
        tenant_id=OuterRef("tenant_id"), tier=OuterRef("tier"), claimed_at__isnull=False
    )
    return theirs.order_by("-claimed_at").values_list("claimed_at", flat=True)[:1]


def _turn(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Never claimed first, then longest ago; ties by priority, then age."""
    last = row["last"]
    ties = (-row["priority_max"], row["oldest"])
    return (False, *ties) if last is None else (True, last, *ties)
