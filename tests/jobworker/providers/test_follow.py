"""Taking over what a killed worker left, with the real Terraform."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobworker.exceptions import JobFailed
from jobworker.models import Deployment, Job, TerraformLock, TerraformState
from jobworker.providers import follow, state, workspace
from tests import databases, factories
from tests.jobworker.rows import deployment
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("terraform")

# A worker process that runs one job and nothing else.
WORKER = textwrap.dedent(
    """
    import sys
    from datetime import timedelta
    import django
    django.setup()
    from django.conf import settings
    settings.JOB_ROOT = sys.argv[2]
    from audit.transcript import Transcript
    from jobworker import params
    from jobworker.context import JobContext
    from jobworker.jobs import cluster_provision
    from jobworker.models import Job
    from jobworker.weight import Weight
    job = Job.objects.get(pk=sys.argv[1])
    ctx = JobContext(
        job_id=job.pk, type=job.type, tenant_id=job.tenant_id, tenant=job.tenant_slug,
        claim_id=job.claim_id, node="w-2, 2", now=job.created_at,
        deadline=job.created_at + timedelta(hours=1),
        transcript=Transcript(claim_id=job.claim_id), weight=Weight(),
        save=lambda column, value: Job.objects.filter(pk=job.pk).update(**{column: value}),
    )
    log = ctx.log
    ctx.log = lambda line, level=20: print(line, flush=True)
    cluster_provision.run(ctx, params.read(cluster_provision.Params, job.params))
    """
)


def lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def killed(start: Any, job_root: Path, tmp_path: Path) -> Any:
    """A job whose worker was killed while two nodes booted, and its tenant."""
    acme = factories.tenant("acme")
    given = {"name": "demo", "variables": '{"delay": 300}', "ttl_hours": 5}
    ctx = start("cluster_provision", tenant=acme, **given)
    out = tmp_path / "worker.log"
    with out.open("w") as log:
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(ctx.job_id), str(job_root)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "project.settings",
                "DATABASE_URL": databases.url(),
            },
        )
    wait_until(
        lambda: "booting node 1" in out.read_text(), within=90, what="a node that boots"
    )
    started = psutil.Process(worker.pid).children(recursive=True)
    assert {process.name() for process in started} >= {"terraform", "sleep"}
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    wait_until(
        lambda: not [process for process in started if lives(process)],
        within=20,
        what=f"the end of {started}",
    )
    Job.objects.filter(pk=ctx.job_id).update(status=Job.Status.FAILED)
    return Job.objects.get(pk=ctx.job_id), acme


def test_what_a_killed_worker_left_is_taken_over_and_nothing_is_started(
    killed: Any, start: Any, run: Any
) -> None:
    broken, acme = killed
    ref = broken.external_ref
    assert ref["what"] == "terraform apply of deployment demo"
    assert (Path(ref["workspace"]) / "errored.tfstate").exists()
    assert TerraformLock.objects.get().claim_id == broken.claim_id
    with pytest.raises(JobFailed, match="adopt that job"):
        run("cluster_destroy", tenant=acme, name="demo")

    ctx = start("cluster_provision", tenant=acme)
    outcome = follow.follow(ctx, kind="cluster", name="demo", ref=ref)

    assert outcome.summary.startswith(
        "state has 3 resources (2 tainted, replaced next time); nothing was started;"
        " errored.tfstate of its workspace is the state now;"
        f" the lock that job {broken.pk} left was taken away"
    )
    left = Deployment.objects.get()
    assert (left.status, left.resources) == ("failed", 3)
    assert left.delete_after is not None
    assert not TerraformLock.objects.exists()
    assert not Path(ref["workspace"]).exists()
    assert not [line for line in ctx.lines() if "Creating..." in line]

    _, outcome = run("cluster_destroy", tenant=acme, name="demo")
    assert outcome.summary == "0 added, 0 changed, 3 destroyed"


def test_a_workspace_on_another_host_is_named(run: Any, start: Any) -> None:
    acme = factories.tenant("acme")
    run("cluster_provision", tenant=acme, name="demo", variables='{"delay": 0}')
    ctx = start("cluster_provision", tenant=acme)

    ref = {"host": "app-9", "workspace": "/jobs/x"}
    outcome = follow.follow(ctx, kind="cluster", name="demo", ref=ref)

    assert outcome.summary == (
        "state has 3 resources; nothing was started; its workspace /jobs/x is on host app-9:"
        " where errored.tfstate lies in it, what that lists is missing from this state"
    )
    found = Deployment.objects.get()
    assert (found.status, found.last_job) == ("active", ctx.job_id)
    assert found.outputs["nodes"] == ["demo-0", "demo-1"]


def test_a_destroy_that_had_done_its_work_is_found_done(run: Any, start: Any) -> None:
    acme = factories.tenant("acme")
    run("cluster_provision", tenant=acme, name="demo", variables='{"delay": 0}')
    run("cluster_destroy", tenant=acme, name="demo")
    Deployment.objects.update(status="destroying")

    ctx = start("cluster_destroy", tenant=acme)
    ref = {"host": socket.gethostname(), "workspace": "/nowhere"}
    outcome = follow.follow(ctx, kind="cluster", name="demo", ref=ref, gone=True)

    assert outcome.summary == (
        "state has 0 resources; nothing was started; its workspace /nowhere is gone"
    )
    assert Deployment.objects.get().status == "destroyed"


def test_a_job_that_still_runs_is_not_taken_over(start: Any) -> None:
    busy = start("cluster_provision")
    one = deployment(busy)
    TerraformLock.objects.create(
        deployment=one,
        lock_id="x",
        job=busy.job_id,
        claim_id=busy.claim_id,
        created_at=busy.now,
    )
    ctx = start("cluster_provision", tenant=one.tenant)

    with pytest.raises(JobFailed, match="still works on cluster demo"):
        follow.follow(ctx, kind="cluster", name="demo", ref={})

    assert TerraformLock.objects.exists()


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("no json", "is damaged and was left alone"),
        (json.dumps({"serial": 9, "lineage": "b"}), "is of another state"),
        (
            json.dumps({"serial": 3, "lineage": "a"}),
            "is no newer than the stored state",
        ),
    ],
)
def test_an_errored_state_that_does_not_fit_is_left_alone(
    start: Any, job_root: Path, content: str, note: str
) -> None:
    ctx = start("cluster_provision")
    one = deployment(ctx)
    stored = {"serial": 3, "lineage": "a"}
    state.store(
        one.pk, body=json.dumps(stored).encode(), document=stored, job_id=ctx.job_id
    )
    folder = job_root / "workspaces" / "acme" / "cluster" / "demo" / "x"
    folder.mkdir(parents=True)
    (folder / workspace.ERRORED).write_text(content)

    [told] = follow.take_over(ctx, one, folder)

    assert note in told
    assert TerraformState.objects.get().serial == 3
    assert (folder / workspace.ERRORED).exists()
