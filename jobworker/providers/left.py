"""left: take over what a broken Terraform job left: its lock, and the state in its workspace."""

import json
from pathlib import Path
from uuid import UUID

from django.db import transaction

from jobworker.context import JobContext
from jobworker.exceptions import JobFailed
from jobworker.models import Deployment, Job
from jobworker.providers import state, workspace
from jobworker.providers.patient import patient


def forgotten(ctx: JobContext, deployment: Deployment) -> Path | None:
    """Take over from the job that holds the state where no row keeps it any more.

    Jobs are archived, and then nobody can adopt them. Its workspace, if it is on this host.
    """
    job = _forgotten_holder(ctx, deployment)
    if job is None:
        return None
    ctx.log(f"job {job} holds the state and is no longer kept: nobody can adopt it")
    place = workspace.place(
        tenant=ctx.tenant, kind=deployment.kind, name=deployment.name, job=job
    )
    folder = place if place.is_dir() else None
    for note in take_over(ctx, deployment, folder):
        ctx.log(note)
    return folder


@patient
def _forgotten_holder(ctx: JobContext, deployment: Deployment) -> UUID | None:
    lock = state.lock(deployment)
    kept = lock is None or Job.objects.filter(pk=lock.job).exists()
    return None if lock is None or kept else lock.job


@patient
def take_over(
    ctx: JobContext, deployment: Deployment, folder: Path | None
) -> list[str]:
    """Store what errored.tfstate holds, and take the dead claim's lock away."""
    notes = []
    errored = folder / workspace.ERRORED if folder else None
    with transaction.atomic():
        state.hold(ctx, deployment)
        lock = state.lock(deployment)
        if lock and state.is_held(lock):
            raise JobFailed(
                f"job {lock.job} still works on {deployment}: there is nothing to take over",
                code="locked",
            )
        if errored and errored.exists():
            notes.append(_push(ctx, deployment, errored))
        if lock:
            lock.delete()
            notes.append(f"the lock that job {lock.job} left was taken away")
    return notes


def _push(ctx: JobContext, deployment: Deployment, errored: Path) -> str:
    body = errored.read_bytes()
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return f"{errored} is damaged and was left alone"
    with state.opened():
        newest = state.newest(deployment)
    if newest and newest.lineage and newest.lineage != document.get("lineage"):
        return f"{errored} is of another state and was left alone"
    serial = document.get("serial")
    if newest and isinstance(serial, int) and serial <= newest.serial:
        return f"{errored} is no newer than the stored state"
    state.store(deployment.pk, body=body, document=document, job_id=ctx.job_id)
    return f"{workspace.ERRORED} of its workspace is the state now"
