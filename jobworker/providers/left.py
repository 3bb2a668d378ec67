"""left: take over what a broken Terraform job left: its lock, and the state in its workspace."""

import json
from pathlib import Path

from django.db import transaction

from jobworker.context import JobContext
from jobworker.exceptions import JobFailed
from jobworker.models import Deployment
from jobworker.providers import state, workspace
from jobworker.providers.patient import patient


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
    newest = state.newest(deployment)
    if newest and newest.lineage and newest.lineage != document.get("lineage"):
        return f"{errored} is of another state and was left alone"
    serial = document.get("serial")
    if newest and isinstance(serial, int) and serial <= newest.serial:
        return f"{errored} is no newer than the stored state"
    state.store(deployment.pk, body=body, document=document, job_id=ctx.job_id)
    return f"{workspace.ERRORED} of its workspace is the state now"
