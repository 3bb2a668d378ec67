"""follow: take over what a broken Terraform job left. Starts nothing. What Adopt runs.

The broken job's claim is gone, and with it the state's listener, but its worker may only
hang: as long as its Terraform is seen to run on this host, its end is waited for. It
was told to stop, or could not store its state, and wrote that to errored.tfstate in its
workspace. Where that is on this host it becomes the state. The lock that the dead claim
left is taken away. Then Terraform is asked what is there.
"""

import socket
from pathlib import Path
from typing import Any

from jobworker import programs
from jobworker.context import JobContext
from jobworker.exceptions import Stopped
from jobworker.models import Deployment
from jobworker.providers import left, provision, terraform, workspace
from workqueue.context import Outcome

Status = Deployment.Status
LOOK = 5.0  # seconds between two looks at a program that still runs


def follow(
    ctx: JobContext, *, kind: str, name: str, ref: dict[str, Any], gone: bool = False
) -> Outcome:
    """Say what is there, and put the row right. `gone`: nothing was to be left."""
    program = terraform.find(ctx)
    deployment = provision.existing(ctx, kind=kind, name=name)
    wait_for(ctx, ref)
    folder, notes = _left(ref)
    notes += left.take_over(ctx, deployment, folder)
    for note in notes:
        ctx.log(note)
    source = workspace.module(kind, deployment.module)
    with provision.at_work(
        ctx, deployment, program=program, source=source, variables=deployment.variables
    ) as work:
        work.init()
        plan = work.plan("-refresh-only") if gone else work.plan()
        found = terraform.kept(ctx, deployment)
        told = {} if gone else provision.outputs(ctx, found)
        status = _status(gone=gone, resources=found.resources, missing=plan.to_do)
        provision.update(
            ctx, deployment, status=status, resources=found.resources, **told
        )
    if folder:
        workspace.remove(folder)
    said = [f"{found.words}; nothing was started", *notes]
    if plan.to_do and not gone:
        said.append("something is missing or differs: submit the job again to mend it")
    return Outcome(
        seen=found.resources,
        summary="; ".join(said),
        details={"resources": found.resources, "tainted": found.tainted},
    )


def wait_for(ctx: JobContext, ref: dict[str, Any]) -> None:
    """Wait for the end of the program, where it is seen to run. Raises Stopped with its pid."""
    pid, folder = ref.get("pid"), Path(str(ref.get("workspace", "")))
    if not isinstance(pid, int) or not _is_here(ref):
        return
    told = f"{ref.get('what')} still runs on {ref['host']} as pid {pid}"
    try:
        while programs.lives(pid=pid, folder=folder):
            if ctx.sign.phase != "waiting for its end":
                ctx.log(f"{told}; this job waits for its end")
            ctx.phase("waiting for its end")
            ctx.sleep(LOOK)
    except Stopped as stopped:
        raise Stopped(f"{stopped}; {told}, and nothing was taken over") from None


def _is_here(ref: dict[str, Any]) -> bool:
    return ref.get("host") == socket.gethostname()


def _left(ref: dict[str, Any]) -> tuple[Path | None, list[str]]:
    """The broken job's workspace where it is here, and what is to be said of it."""
    host, folder = str(ref.get("host", "")), Path(str(ref.get("workspace", "")))
    if not _is_here(ref):
        return None, [
            f"its workspace {folder} is on host {host}: where errored.tfstate lies in it,"
            " what that lists is missing from this state",
            f"whether it still runs there, as pid {ref.get('pid')}, is not seen from here:"
            " look before you submit the job again",
        ]
    if not workspace.is_one(folder) or not folder.is_dir():
        return None, [f"its workspace {folder} is gone"]
    return folder, []


def _status(*, gone: bool, resources: int, missing: bool) -> str:
    if gone:
        return Status.FAILED if resources else Status.DESTROYED
    return Status.FAILED if missing else Status.ACTIVE
