"""autodelete_sweep: end deployments whose time is over, and warn before it is.

Outside: nothing; it submits destroy jobs, at most AT_ONCE a sweep. A second run finds
what the first has submitted (the job's lock) and warned of (the marks on the row). One
runs at a time. Protected deployments are never touched. One that could not be destroyed
is listed, and comes again after AGAIN_AFTER and after those that were not tried yet.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Concat

from audit import ledger
from jobworker.context import JobContext
from jobworker.exceptions import Locked
from jobworker.models import Deployment, Job
from jobworker.providers import provision, workspace
from jobworker.submit import submit
from workqueue.context import Outcome
from workqueue.models import Tenant

AT_ONCE = 20  # destroy jobs a sweep
AGAIN_AFTER = timedelta(hours=6)  # one whose destroy job failed is submitted again
LISTED = 50  # orphans named; more are counted
DESTROYED_BY = {
    Deployment.Kind.CLUSTER: "cluster_destroy",
    Deployment.Kind.DATABASE: "database_destroy",
}
# The nearest one counts: who is told of the last hour is not told of the last day again.
WARNINGS = (
    ("warned_hour_for", timedelta(hours=1), "an hour"),
    ("warned_day_for", timedelta(hours=24), "a day"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """It takes none."""


@dataclass(slots=True, kw_only=True)
class _Sweep:
    """What one sweep has done so far."""

    ctx: JobContext
    warned: int = 0
    submitted: int = 0
    waiting: int = 0  # over their time, left to the next sweep or to who works on them
    failed: int = 0
    error: str = ""
    orphans: list[str] = field(default_factory=list)

    @contextmanager
    def on(self, deployment: Deployment) -> Iterator[None]:
        """One that fails is recorded, the others go on."""
        try:
            yield
        except Exception as problem:
            self.failed += 1
            line = f"{deployment.tenant_slug}: {deployment}: {type(problem).__name__}: {problem}"
            self.error = self.error or line
            self.ctx.log(line, logging.ERROR)


def lock(params: Params) -> str:
    """A second one is not even submitted."""
    return "autodelete_sweep"


def run(ctx: JobContext, params: Params) -> Outcome:
    """Warn, submit, list what nobody owns."""
    sweep = _Sweep(ctx=ctx)
    ctx.phase("warn")
    for mark, ahead, words in WARNINGS:
        for deployment in _unwarned(ctx, mark, ahead):
            ctx.check_cancel()
            with sweep.on(deployment):
                sweep.warned += _warn(ctx, deployment, mark=mark, words=words)
    ctx.phase("submit")
    _submit(sweep)
    ctx.phase("look for what nobody owns")
    _leave(sweep)
    sweep.orphans = _orphans(ctx)
    for orphan in sweep.orphans[:LISTED]:
        ctx.log(orphan, logging.WARNING)
    pruned = workspace.prune(now=ctx.now)
    counts = {
        "submitted": sweep.submitted,
        "warned": sweep.warned,
        "waiting": sweep.waiting,
        "failed": sweep.failed,
        "orphaned": len(sweep.orphans),
    }
    return Outcome(
        seen=sweep.submitted + sweep.warned + sweep.waiting + sweep.failed,
        changed=sweep.submitted + sweep.warned,
        skipped=sweep.waiting,
        failed=sweep.failed,
        error=sweep.error,
        summary=", ".join(f"{count} {word}" for word, count in counts.items() if count)
        or "nothing is over its time",
        details={
            **counts,
            "workspaces_removed": pruned,
            "orphans": sweep.orphans[:LISTED],
        },
    )


def _unwarned(ctx: JobContext, mark: str, ahead: timedelta) -> "QuerySet[Deployment]":
    soon = Deployment.objects.expiring(before=ctx.now + ahead)
    # A deadline that was moved is warned of again.
    return soon.filter(delete_after__gt=ctx.now).exclude(**{mark: F("delete_after")})


def _warn(ctx: JobContext, deployment: Deployment, *, mark: str, words: str) -> bool:
    marks = {
        each: deployment.delete_after
        for each, ahead, _ in WARNINGS
        if deployment.delete_after and deployment.delete_after <= ctx.now + ahead
    }
    with transaction.atomic():
        still = Deployment.objects.filter(
            pk=deployment.pk, delete_after=deployment.delete_after
        ).exclude(**{mark: F("delete_after")})
        if not still.update(**marks):
            return False
        ledger.event(
            type="deployment.expiring",
            tenant_id=deployment.tenant_id,
            tenant=deployment.tenant_slug,
            subject=f"deployment:{deployment.kind}/{deployment.name}",
            data={
                "within": words,
                "delete_after": f"{deployment.delete_after:%Y-%m-%dT%H:%M:%SZ}",
                "owner": deployment.created_by,
            },
            severity=2,
        )
    ctx.log(f"{deployment.tenant_slug}: {deployment} ends within {words}: warned")
    return True


def _submit(sweep: _Sweep) -> None:
    ctx = sweep.ctx
    over = Deployment.objects.expiring(before=ctx.now)
    due = Q(tried=None) | Q(tried__lte=ctx.now - AGAIN_AFTER)
    free = _tried(over).filter(due).select_related("tenant")
    turns = F("tried").asc(nulls_first=True), "delete_after", "id"
    for deployment in free.order_by(*turns):
        if sweep.submitted == AT_ONCE:
            break
        ctx.check_cancel()
        with sweep.on(deployment):
            try:
                job = submit(
                    DESTROYED_BY[Deployment.Kind(deployment.kind)],
                    {"name": deployment.name},
                    tenant=deployment.tenant,
                    who=provision.SWEEP,
                    origin="engine",
                    why=f"its time was over at {deployment.delete_after:%Y-%m-%d %H:%M} UTC",
                )
            except Locked:
                continue  # somebody was quicker; the next sweep looks again
            sweep.submitted += 1
            ctx.log(f"{deployment.tenant_slug}: {deployment}: job {job.id} destroys it")
    sweep.waiting = (
        over.filter(tenant__in=Tenant.objects.all()).count() - sweep.submitted
    )


def _tried(over: "QuerySet[Deployment]") -> "QuerySet[Any]":
    """Those that no job works on, with when the last one failed to destroy them."""
    on_it = Job.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        lock=Concat(
            Value("deployment:"), OuterRef("kind"), Value(":"), OuterRef("name")
        ),
    )
    failed = on_it.filter(
        type__in=DESTROYED_BY.values(),
        status=Job.Status.FAILED,
        # One that failed before its time was extended says nothing.
        finished_at__gte=OuterRef("delete_after"),
    ).order_by("-finished_at")
    return over.filter(~Exists(on_it.unfinished())).annotate(
        tried=Subquery(failed.values("finished_at")[:1])
    )


def _leave(sweep: _Sweep) -> None:
    """What no job works on any more and still looks so: the end of its job should have said it."""
    alive = Job.objects.unfinished().filter(pk=OuterRef("last_job"))
    for deployment in Deployment.objects.under_way().filter(~Exists(alive)):
        with sweep.on(deployment), transaction.atomic():
            if provision.leave(deployment, why="its job ended in the middle"):
                line = f"{deployment.tenant_slug}: no job works on {deployment}: it counts as failed"
                sweep.ctx.log(line, logging.WARNING)


def _orphans(ctx: JobContext) -> list[str]:
    """What exists and nobody takes away. Listed, never deleted."""
    left = Deployment.objects.filter(resources__gt=0)
    ownerless = left.filter(~Exists(Tenant.objects.filter(pk=OuterRef("tenant_id"))))
    found = [
        f"{each} of the removed tenant {each.tenant_slug}: {each.resources} resources"
        for each in ownerless
    ]
    # Also those of which the state knows nothing: what was being made may be there.
    broken = Deployment.objects.filter(status=Deployment.Status.FAILED)
    found += [
        f"{each} of {each.tenant_slug} failed and is over its time: destroy it by hand"
        for each in broken.filter(delete_after__lte=ctx.now)
    ]
    over = Deployment.objects.expiring(before=ctx.now)
    found += [
        f"{each} of {each.tenant_slug} is over its time and its destroy job failed at"
        f" {each.tried:%Y-%m-%d %H:%M} UTC: it is submitted again"
        f" {AGAIN_AFTER.seconds // 3600} hours later"
        for each in _tried(over).filter(tried__gt=ctx.now - AGAIN_AFTER)
    ]
    return [*found, *map(_errored, workspace.errored())]


def _errored(folder: Path) -> str:
    return f"{folder}: {workspace.ERRORED} was never taken over; adopt its job"
