"""Taking over what a killed worker left, with the real Terraform."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobworker.exceptions import JobFailed, Stopped
from jobworker.models import Deployment, Job, TerraformLock
from jobworker.providers import follow, process
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
def booting(start: Any, job_root: Path, tmp_path: Path) -> Any:
    """A job's worker while two nodes boot, what it has started, the job, and its tenant."""
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
    yield worker, started, Job.objects.get(pk=ctx.job_id), acme
    worker.kill()
    worker.wait()


@pytest.fixture
def killed(booting: Any) -> Any:
    """A job whose worker was killed while two nodes booted, and its tenant."""
    worker, started, job, acme = booting
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    wait_until(
        lambda: not [process for process in started if lives(process)],
        within=20,
        what=f"the end of {started}",
    )
    fail(job)
    return job, acme


def fail(job: Job) -> None:
    """As somebody else does, who takes its worker for dead."""
    Job.objects.filter(pk=job.pk).update(status=Job.Status.FAILED)


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


def test_the_terraform_of_a_worker_that_only_hangs_is_waited_for(
    booting: Any, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, _, broken, acme = booting
    worker.send_signal(signal.SIGSTOP)
    fail(broken)
    folder = Path(broken.external_ref["workspace"])
    pid = broken.external_ref["pid"]
    monkeypatch.setattr(follow, "LOOK", 0.05)
    ctx = start("cluster_provision", tenant=acme)
    looks: list[bool] = []

    def sleep(_: float) -> None:
        looks.append(TerraformLock.objects.exists() and folder.is_dir())
        if len(looks) == 3:
            worker.kill()  # its guard sees to Terraform
        time.sleep(0.05)

    monkeypatch.setattr(ctx, "sleep", sleep)

    outcome = follow.follow(ctx, kind="cluster", name="demo", ref=broken.external_ref)

    assert len(looks) >= 3
    assert all(looks)
    assert (
        f"terraform apply of deployment demo still runs on {socket.gethostname()} as"
        f" pid {pid}; this job waits for its end"
    ) in ctx.lines()
    assert "errored.tfstate of its workspace is the state now" in outcome.summary
    assert Deployment.objects.get().resources == 3


@pytest.fixture
def alive(job_root: Path) -> Any:
    """The reference to a program of a job that works in its workspace, and the program."""
    folder = job_root / "workspaces" / "acme" / "cluster" / "demo" / "x"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"], cwd=folder) as program:
        yield (
            process.reference(
                what="terraform apply of deployment demo",
                program="terraform",
                pid=program.pid,
                folder=folder,
                ended="wrote its state",
            ),
            program,
        )
        program.kill()


def test_who_is_told_to_stop_while_it_waits_takes_nothing_and_says_what_runs(
    start: Any, alive: Any
) -> None:
    ref, program = alive
    ctx = start("cluster_provision")
    one = deployment(ctx)
    TerraformLock.objects.create(
        deployment=one,
        lock_id="x",
        job=ctx.job_id,
        claim_id=ctx.job_id,
        created_at=ctx.now,
    )
    threading.Timer(0.3, ctx.stop, args=["cancel"]).start()

    with pytest.raises(Stopped) as stopped:
        follow.follow(ctx, kind="cluster", name="demo", ref=ref)

    assert str(stopped.value) == (
        "cancelled; terraform apply of deployment demo still runs on"
        f" {socket.gethostname()} as pid {program.pid},"
        " and nothing was taken over"
    )
    assert ctx.sign.phase == "waiting for its end"
    assert TerraformLock.objects.exists()
    assert Path(ref["workspace"]).is_dir()


@pytest.mark.parametrize("but", ["its folder", "its host", "its end"])
def test_a_program_that_is_not_the_jobs_any_more_is_not_waited_for(
    start: Any, alive: Any, tmp_path: Path, but: str
) -> None:
    """Its number may be another's by now, here or on another host."""
    ref, program = alive
    if but == "its end":
        program.kill()  # not reaped: its number is still its own
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    elif but == "its folder":
        ref["workspace"] = str(tmp_path)
    else:
        ref["host"] = "app-9"
    ctx = start("cluster_provision")
    ctx.stop("cancel")  # it would raise where it waited

    follow.wait_for(ctx, ref)

    assert ctx.lines() == []


def test_a_workspace_on_another_host_is_named(run: Any, start: Any) -> None:
    acme = factories.tenant("acme")
    run("cluster_provision", tenant=acme, name="demo", variables='{"delay": 0}')
    ctx = start("cluster_provision", tenant=acme)

    ref = {"host": "app-9", "workspace": "/jobs/x", "pid": 17}
    outcome = follow.follow(ctx, kind="cluster", name="demo", ref=ref)

    assert outcome.summary == (
        "state has 3 resources; nothing was started; its workspace /jobs/x is on host app-9:"
        " where errored.tfstate lies in it, what that lists is missing from this state;"
        " whether it still runs there, as pid 17, is not seen from here:"
        " look before you submit the job again"
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
