"""provision: bring a deployment to what was asked for, or take it away.

The row says what is there: its module and variables change only when Terraform begins
to apply them, so that a plan that was refused leaves an active deployment as it was.
Doing it again is safe: what is there stays, and the state's lock keeps two apart.
"""

import json
import logging
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction

from audit import clock, ledger, text
from jobworker.context import JobContext
from jobworker.exceptions import JobFailed
from jobworker.models import Deployment
from jobworker.models.deployment import mask
from jobworker.providers import left, state, terraform, workspace
from jobworker.providers.patient import patient
from jobworker.providers.terraform import Kept, Terraform
from workqueue.context import Outcome

Status = Deployment.Status
SWEEP = "autodelete_sweep"  # who submits the jobs that end what is over its time
# Characters of them that the row keeps; of the sensitive ones all or none.
LARGEST_OUTPUTS, LARGEST_SECRET_OUTPUTS = 1_000_000, 4_000_000


def provision(
    ctx: JobContext,
    *,
    kind: str,
    name: str,
    module: str,
    variables: dict[str, Any],
    made_up: Sequence[str] = (),
    ttl_hours: int = 0,
    protected: bool = False,
) -> Outcome:
    """Make or change it. `made_up`: secret variables that are ours to think of."""
    program = terraform.find(ctx)
    source = workspace.module(kind, module)
    deployment = _take(
        ctx, kind=kind, name=name, module=module, variables=variables, made_up=made_up
    )
    asked = {
        "module": module,
        "variables": variables,
        "protected": protected,
        "delete_after": ctx.now + timedelta(hours=ttl_hours) if ttl_hours else None,
    }
    with at_work(
        ctx, deployment, program=program, source=source, variables=variables
    ) as work:
        work.init()
        plan = work.plan()
        update(ctx, deployment, status=Status.PROVISIONING, **asked)
        done = work.apply() if plan.to_do else plan
        found = terraform.kept(ctx, deployment)
        told = outputs(ctx, found)
        update(ctx, deployment, status=Status.ACTIVE, resources=found.resources, **told)
    return _outcome(done, plan.to_do, outputs=told["outputs"])


def destroy(ctx: JobContext, *, kind: str, name: str) -> Outcome:
    """Take it away. What is gone already is no failure."""
    program = terraform.find(ctx)
    deployment = existing(ctx, kind=kind, name=name)
    if deployment.status == Status.DESTROYED:
        return Outcome(summary=f"{deployment} is destroyed already")
    if deployment.protected:
        raise JobFailed(
            f"{deployment} is protected; take the protection off first",
            code="protected",
        )
    if ctx.created_by == SWEEP and not deployment.is_over(ctx.now):
        return Outcome(skipped=1, summary=f"{deployment} stays: its time was extended")
    source = workspace.module(kind, deployment.module)
    variables = deployment.variables
    with at_work(
        ctx, deployment, program=program, source=source, variables=variables
    ) as work:
        work.init()
        plan = work.plan("-destroy")
        update(ctx, deployment, status=Status.DESTROYING)
        done = work.apply() if plan.to_do else plan
        update(
            ctx,
            deployment,
            status=Status.DESTROYED,
            resources=terraform.kept(ctx, deployment).resources,
            outputs={},
            secret_outputs="",
            delete_after=None,
        )
    return _outcome(done, plan.to_do)


def broken_off(job_id: UUID, why: str) -> None:
    """Say of what a job was working on that nobody does any more. In the caller's transaction."""
    for deployment in Deployment.objects.under_way().filter(last_job=job_id):
        leave(deployment, why=why)


def leave(deployment: Deployment, *, why: str) -> bool:
    """A job stopped in the middle: parts of it may be there. False: another job has it by now."""
    found = terraform.in_state(deployment)
    return _move(
        deployment,
        job=deployment.last_job,
        status=Status.FAILED,
        resources=found.resources,
        why=why,
    )


@patient
def existing(ctx: JobContext, *, kind: str, name: str) -> Deployment:
    """The tenant's deployment. Raises JobFailed where there is none."""
    found = Deployment.objects.filter(tenant_id=ctx.tenant_id, kind=kind, name=name)
    if (deployment := found.first()) is None:
        raise JobFailed(
            f"tenant {ctx.tenant} has no {kind} {name}", code="unknown_deployment"
        )
    return deployment


def outputs(ctx: JobContext, found: Kept) -> dict[str, Any]:
    """What the row keeps of the outputs, the sensitive ones apart. Tells their names."""
    mask(found.secret_outputs)  # before a word of them is logged or kept
    plain = dict(text.gate_json(found.outputs, limit=LARGEST_OUTPUTS))
    secret = json.dumps(found.secret_outputs) if found.secret_outputs else ""
    names = [*plain, *(f"{name} (sensitive)" for name in found.secret_outputs)]
    if names:
        ctx.log(f"outputs: {', '.join(names)}")
    if len(secret) > LARGEST_SECRET_OUTPUTS:
        ctx.log(
            f"the sensitive outputs have {len(secret):,} characters: more than"
            f" {LARGEST_SECRET_OUTPUTS:,} stand in the state alone",
            logging.WARNING,
        )
        secret = ""
    return {"outputs": plain, "secret_outputs": secret}


@contextmanager
def at_work(
    ctx: JobContext,
    deployment: Deployment,
    *,
    program: str,
    source: Path,
    variables: dict[str, Any],
) -> Iterator[Terraform]:
    """Terraform in a new workspace. What goes wrong inside is written on the row."""
    before = deployment.status
    _begin(ctx, deployment)
    try:
        old = left.forgotten(ctx, deployment)
        if locked := terraform.locked_by_another(ctx, deployment):
            raise locked
        folder = workspace.make(
            tenant=ctx.tenant,
            kind=deployment.kind,
            name=deployment.name,
            job=ctx.job_id,
            module=source,
            now=ctx.now,
        )
        made_up = json.loads(deployment.secret_variables or "{}")
        terraform.files(folder, {**variables, **made_up})
        with state.backend(ctx, deployment) as backend:
            yield Terraform(
                ctx=ctx,
                deployment=deployment,
                program=program,
                folder=folder,
                env=terraform.environment(folder, backend),
            )
    except BaseException:
        _failed(ctx, deployment, before=before)
        raise
    for each in filter(None, (folder, old)):
        workspace.remove(each)


@patient
def _begin(ctx: JobContext, deployment: Deployment) -> None:
    """From here on this job writes on the row, and what it knows is masked."""
    with transaction.atomic():
        state.hold(ctx, deployment)
        Deployment.objects.filter(pk=deployment.pk).update(last_job=ctx.job_id)
    with state.opened():
        deployment.secrets()
        state.newest(deployment)


@patient
@transaction.atomic
def _take(
    ctx: JobContext,
    *,
    kind: str,
    name: str,
    module: str,
    variables: dict[str, Any],
    made_up: Sequence[str],
) -> Deployment:
    """The row, made where there is none yet, with the secrets that it needs."""
    state.hold(ctx, f"{kind} {name}")
    deployment, _ = Deployment.objects.get_or_create(
        tenant_id=ctx.tenant_id,
        kind=kind,
        name=name,
        defaults={
            "tenant_slug": ctx.tenant,
            "module": module,
            "variables": variables,
            "created_at": ctx.now,
            "created_by": ctx.created_by,
            "changed_at": ctx.now,
            "last_job": ctx.job_id,  # who is to be alive while it is PROVISIONING
        },
    )
    if deployment.status == Status.DESTROYED:
        deployment.status, deployment.secret_variables = Status.PROVISIONING, ""
    with state.opened():
        thought_of = json.loads(deployment.secret_variables or "{}")
    missing = {
        each: secrets.token_urlsafe(24) for each in made_up if each not in thought_of
    }
    deployment.secret_variables = (
        json.dumps({**thought_of, **missing}) if made_up else ""
    )
    deployment.last_job = ctx.job_id
    deployment.save(update_fields=["status", "secret_variables", "last_job"])
    return deployment


@patient
def update(
    ctx: JobContext, deployment: Deployment, *, status: str, **values: Any
) -> None:
    """Write on the row. Raises JobFailed where the job has ended, or another has the row by now."""
    with transaction.atomic():
        state.hold(ctx, deployment)
        if not _move(deployment, job=ctx.job_id, status=status, **values):
            deployment.refresh_from_db(fields=["last_job"])
            raise JobFailed(
                f"another job has {deployment} by now: job {deployment.last_job};"
                " see what that makes of it before you submit this one again",
                code="lost",
            )
    deployment.status = status


def _move(
    deployment: Deployment,
    *,
    job: UUID | None,
    status: str,
    why: str = "",
    **values: Any,
) -> bool:
    """Write on the row that the job worked on last, and tell of a new status."""
    mine = Deployment.objects.filter(pk=deployment.pk, last_job=job)
    # Asked of the row: the job may repeat this without knowing what was stored.
    was = mine.select_for_update(no_key=True).values_list("status", flat=True).first()
    if was is None:
        return False
    mine.update(status=status, changed_at=clock.DatabaseNow(), **values)
    if status != was:
        ledger.event(
            type=f"deployment.{status}",
            tenant_id=deployment.tenant_id,
            tenant=deployment.tenant_slug,
            subject=f"deployment:{deployment.kind}/{deployment.name}",
            data={"job": str(job), "was": was, **({"why": why} if why else {})},
            severity=3 if status == Status.FAILED else 1,
        )
    return True


def _failed(ctx: JobContext, deployment: Deployment, *, before: str) -> None:
    """A plan that was refused changed nothing; whatever came later may have."""
    if deployment.status == before and before != Status.PROVISIONING:
        return
    found = terraform.kept(ctx, deployment)
    with suppress(JobFailed):  # it is another's to say
        update(ctx, deployment, status=Status.FAILED, resources=found.resources)


def _outcome(done: Any, to_do: bool, **result: Any) -> Outcome:
    counts = {"added": done.added, "changed": done.changed, "destroyed": done.destroyed}
    if not to_do:
        return Outcome(
            summary="no changes", details={**result, **dict.fromkeys(counts, 0)}
        )
    return Outcome(
        seen=done.planned,
        changed=sum(counts.values()),
        summary=", ".join(f"{count} {word}" for word, count in counts.items()),
        details={**result, **counts},
    )
