"""submit: a pending row. Joins the caller's transaction.

Called by the admin's form, the command and Python. What is wrong with which parameter
is said; a second unfinished job on the same thing is refused with the first one named.
"""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from audit import clock, ledger
from audit.text import visible
from jobworker import params as parameters
from jobworker import registry
from jobworker.exceptions import InvalidParams, Locked
from jobworker.models import Job
from jobworker.registry import JobType
from workqueue import wakeup
from workqueue.bounds import quote
from workqueue.models import Tenant

CHANNEL = "millrace_jobs"  # wakes job workers; those of items would wake them too often
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


def submit(
    type: str,
    params: Mapping[str, object],
    *,
    tenant: Tenant,
    who: str,
    origin: str,
    priority: int = 0,
    why: str = "",
    adopts: Job | None = None,
) -> Job:
    """Make a pending job of the tenant, and its Change, in the caller's transaction.

    `origin`: admin | command | api | engine. `priority`: -100 to 100, higher first among
    the tenant's own. Raises UnknownType, InvalidParams with a sentence per parameter,
    and Locked where an unfinished job works on the same thing.
    """
    row = registry.row(type)
    if problems := _refused(row, tenant=tenant, priority=priority):
        raise InvalidParams(problems)
    checked = parameters.read(registry.module(type).Params, params)
    job = Job(
        tenant=tenant,
        tenant_slug=tenant.slug,
        type=type,
        tier=row.tier,
        subject=registry.subject(type, checked)[:200],
        params=parameters.as_json(checked),
        exclusive=row.exclusive,
        lock=registry.lock(type, checked)[:200],
        time_limit_s=int(row.time_limit.total_seconds()),
        priority=max(LOWEST_PRIORITY, min(HIGHEST_PRIORITY, priority)),
        created_at=clock.DatabaseNow(),
        created_by=visible(who)[:150],
        origin=visible(origin)[:8],
        adopts=adopts,
        external_ref=adopts.external_ref if adopts else None,
    )
    try:
        with transaction.atomic():
            job.save(force_insert=True)
            # After the lock: what another job is about to make is named by it.
            if adopts is None and (refused := registry.refuse(type, checked, tenant)):
                raise InvalidParams(refused)
            _tell(job, who=who, origin=origin, why=why)
    except IntegrityError:
        raise Locked(_locked(job)) from None
    job.refresh_from_db(fields=["created_at"])
    transaction.on_commit(wake)
    return job


def wake() -> None:
    """Let job workers look at once. After the commit."""
    wakeup.notify(CHANNEL)


def _refused(row: JobType, *, tenant: Tenant, priority: object) -> dict[str, str]:
    """What stands against it whatever its parameters are."""
    problems = {}
    if not row.by_hand and not tenant.is_platform:
        # Its result and output name all tenants, and a tenant's staff read its jobs.
        problems["tenant"] = (
            f"Jobs of type {row.type} work for all tenants: they are the platform's."
        )
    if not isinstance(priority, int) or isinstance(priority, bool):
        problems["priority"] = (
            f"{quote(priority)} is not a whole number. Enter one from"
            f" {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}."
        )
    return problems


def _locked(job: Job) -> str:
    what = job.subject or job.lock
    first = Job.objects.unfinished().filter(tenant=job.tenant, lock=job.lock).first()
    if first is None:
        return f"{what} was locked by another job at the same moment. Submit it again."
    since = first.started_at or first.created_at
    return (
        f"{what} is locked by job {first.id} ({first.type}, {first.get_status_display().lower()})"
        f" since {since:%Y-%m-%d %H:%M:%S} UTC"
    )


def _tell(job: Job, *, who: str, origin: str, why: str) -> None:
    new: dict[str, Any] = {"type": job.type, "subject": job.subject, **job.params}
    if job.adopts_id:
        new["adopts"] = str(job.adopts_id)
    ledger.change(
        who=who,
        origin=origin,
        subject=f"job:{job.id}",
        verb="adopted" if job.adopts_id else "submitted",
        old={},
        new=new,
        why=why,
        tenant_id=job.tenant_id,
    )
