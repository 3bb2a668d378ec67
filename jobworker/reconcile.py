"""reconcile: fail the jobs that their worker abandoned. Never requeue them.

What they began outside may be under way, and a second start would do it twice. Called
when a job worker starts, with its beat, and by the scheduler's judging. A job is
abandoned when its node is stopped or gone, when its heartbeat was set back before its
claim (the mark of a drain that gave it up), or, for who may judge, when its heartbeat
is older than a process may be silent.
"""

import logging
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from audit import clock
from jobworker import registry
from jobworker.exceptions import UnknownType
from jobworker.finish import end
from jobworker.models import Job
from workqueue import node
from workqueue.models import Node, Tenant

logger = logging.getLogger(__name__)

# Set back before its claim: given up, and anybody's to fail.
GIVEN_UP = Q(heartbeat_at__lt=F("claimed_at"))


def reconcile(*, may_judge: bool = False) -> list[UUID]:
    """Fail what is abandoned, and end jobs whose tenant is gone; the ids of those failed."""
    ended: list[UUID] = []
    if not Job.objects.unfinished().exists():
        return ended  # most beats end here, by one look
    for job in Job.objects.running().filter(_abandoned(may_judge)):
        with transaction.atomic():
            error = _words(job)
            if end(
                job,
                word="abandoned",
                code="abandoned",
                error=error,
                where=_abandoned(may_judge),
            ):
                ended.append(job.id)
                logger.warning(
                    "job abandoned id=%s type=%s: %s", job.id, job.type, error
                )
    _end_orphans()
    return ended


def give_up(claims: list[UUID]) -> int:
    """Mark own jobs as given up, at the end of a drain: whoever comes next fails them at once."""
    mine = Job.objects.running().filter(claim_id__in=claims)
    return mine.update(heartbeat_at=F("claimed_at") - stopped_after())


def stopped_after() -> timedelta:
    """How long a job worker may be silent."""
    return node.stopped_after(Node.Kind.JOBWORKER)


def _abandoned(may_judge: bool) -> Q:
    known = Node.objects.filter(id=OuterRef("node_id"))
    stopped = known.filter(status=Node.Status.STOPPED)
    abandoned = Exists(stopped) | ~Exists(known) | GIVEN_UP
    if may_judge:
        abandoned |= Q(heartbeat_at__lt=clock.earlier(stopped_after()))
    return abandoned


def _words(job: Job) -> str:
    """What happened, what it left outside, and what to do."""
    ref = job.external_ref if isinstance(job.external_ref, dict) else {}
    what = ref.get("what") or f"{job.type} {job.subject}".strip()
    text = f"worker {job.node or '(unknown)'} stopped while {what} was running"
    if then := ref.get("then"):
        text = f"{text}; {then}"
    if ref and _follows(job.type):
        return f'{text}. It is not started again. Use "Adopt" to follow it again.'
    return (
        f"{text}. It is not started again: look at what it left, then submit it anew."
    )


def _follows(type: str) -> bool:
    try:
        return registry.follow(type) is not None
    except (UnknownType, ImportError):
        return False


def _end_orphans() -> None:
    """Jobs that wait for a tenant that was removed. What runs of it is told to stop."""
    gone = ~Exists(Tenant.objects.filter(id=OuterRef("tenant_id")))
    for job in Job.objects.pending().filter(gone):
        with transaction.atomic():
            end(
                job,
                word="cancelled",
                code="cancelled",
                error="",
                summary="its tenant was removed",
            )
    Job.objects.running().filter(gone, cancel_requested_at=None).update(
        cancel_requested_at=clock.DatabaseNow(),
        cancel_requested_by="the tenant's removal",
    )
