"""operate: what an operator does to jobs: cancel, adopt. Each writes its Change."""

from django.db import transaction
from django.db.models import Q

from audit import clock, ledger
from audit.text import gate
from jobworker import registry
from jobworker.exceptions import CannotAdopt, UnknownType
from jobworker.finish import end
from jobworker.models import Job
from jobworker.submit import submit, wake
from workqueue.models import Tenant

# Ends after which something may go on outside that nobody looks after. Others can be
# adopted all the same: a program that had to be killed leaves its state's lock behind,
# and only who follows it takes that away.
LEFT_BEHIND = ("abandoned", "drained", "time_limit", "lost", "unstorable")


def cancel(job: Job, *, who: str, origin: str, why: str) -> bool:
    """End a job: one that waits at once, one that runs by telling it to stop.

    False: it has ended already, or was told so before.
    """
    with transaction.atomic():
        row = Job.objects.select_for_update().filter(pk=job.pk).first()
        if row is None or row.status not in Job.UNFINISHED:
            return False
        if row.status == Job.Status.PENDING:
            summary = f"cancelled by {who}: {why}" if why else f"cancelled by {who}"
            done = end(
                row, word="cancelled", code="cancelled", error="", summary=summary
            )
        else:
            asked = Job.objects.running().filter(pk=row.pk, cancel_requested_at=None)
            done = bool(
                asked.update(
                    cancel_requested_at=clock.DatabaseNow(),
                    cancel_requested_by=gate(who, limit=150),
                )
            )
        if not done:
            return False
        ledger.change(
            who=who,
            origin=origin,
            subject=f"job:{row.id}",
            verb="cancelled",
            old={"status": row.status},
            new={
                "status": "cancelled"
                if row.status == Job.Status.PENDING
                else "told to stop"
            },
            why=why,
            tenant_id=row.tenant_id,
        )
        transaction.on_commit(wake)
    return True


def adopt(job: Job, *, who: str, origin: str, why: str) -> Job:
    """A new job that only follows what this one began outside. It starts nothing there.

    Raises CannotAdopt with the reason, Locked where another works on the same thing, and
    InvalidParams where this release refuses what that one was given.
    """
    with transaction.atomic():
        row = Job.objects.select_for_update().get(pk=job.pk)
        if reason := adoptable(row):
            raise CannotAdopt(reason)
        tenant = Tenant.objects.get(pk=row.tenant_id)
        return submit(
            row.type,
            row.params,
            tenant=tenant,
            who=who,
            origin=origin,
            why=why,
            adopts=row,
        )


def adoptable(job: Job) -> str:
    """Why it cannot be adopted; "": it can."""
    if job.status in Job.UNFINISHED:
        return "It has not ended."
    if job.status == Job.Status.SUCCEEDED:
        return "It succeeded: there is nothing left to follow."
    if not job.external_ref:
        return "It began nothing outside that could be followed. Submit it again."
    try:
        follows = registry.follow(job.type)
    except (UnknownType, ImportError):
        return f"This release knows no job type {job.type}."
    if follows is None:
        return f"What {job.type} begins ends with its worker. Submit it again."
    kept = Q(status__in=[*Job.UNFINISHED, Job.Status.SUCCEEDED])
    if heir := job.adopted_by.filter(kept).first():
        return f"Job {heir.id} has adopted it already."
    if not Tenant.objects.filter(pk=job.tenant_id).exists():
        return "Its tenant was removed."
    return ""
