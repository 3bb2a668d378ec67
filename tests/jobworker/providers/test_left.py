"""What a broken job left, without Terraform."""

import json
from pathlib import Path
from typing import Any

import pytest

from audit import clock
from jobworker.exceptions import JobFailed
from jobworker.models import Deployment, TerraformLock, TerraformState
from jobworker.providers import left, provision, state, workspace
from tests.jobworker.rows import deployment, lose_key


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

    [told] = left.take_over(ctx, one, folder)

    assert note in told
    assert TerraformState.objects.get().serial == 3
    assert (folder / workspace.ERRORED).exists()


def test_beside_a_state_that_no_key_opens_nothing_is_taken_over(
    start: Any, settings: Any, tmp_path: Path
) -> None:
    ctx = start()
    one = deployment(ctx)
    lose_key(settings)
    (tmp_path / workspace.ERRORED).write_text(json.dumps({"serial": 9}))

    with pytest.raises(JobFailed, match=r"^jobworker.TerraformState.body cannot be"):
        left.take_over(ctx, one, tmp_path)

    assert TerraformState.objects.count() == 1


@pytest.fixture
def locked(start: Any) -> Any:
    """A job, and the cluster of its tenant with the lock of a job that no row keeps."""
    ctx = start("cluster_destroy")
    one = deployment(ctx)
    lock = TerraformLock.objects.create(
        deployment=one,
        lock_id="x",
        job=clock.uuid7(),
        claim_id=clock.uuid7(),
        created_at=ctx.now,
    )
    return ctx, one, lock


def test_the_lock_of_a_job_that_is_no_longer_kept_is_taken_away(locked: Any) -> None:
    """Nobody can adopt that job."""
    ctx, one, lock = locked

    assert left.forgotten(ctx, one) is None

    assert not TerraformLock.objects.exists()
    assert ctx.lines() == [
        f"job {lock.job} holds the state and is no longer kept: nobody can adopt it",
        f"the lock that job {lock.job} left was taken away",
    ]


def test_the_state_that_a_forgotten_job_left_on_this_host_is_taken_over(
    locked: Any, job_root: Path
) -> None:
    ctx, one, lock = locked
    folder = workspace.place(
        tenant=ctx.tenant, kind="cluster", name="demo", job=lock.job
    )
    folder.mkdir(parents=True)
    (folder / workspace.ERRORED).write_text(json.dumps({"serial": 4}))

    assert left.forgotten(ctx, one) == folder

    assert TerraformState.objects.get().serial == 4
    assert "errored.tfstate of its workspace is the state now" in ctx.lines()


def test_the_lock_of_a_job_that_can_be_adopted_stays(locked: Any, start: Any) -> None:
    ctx, one, _ = locked
    TerraformLock.objects.update(job=start().job_id)

    assert left.forgotten(ctx, one) is None

    assert TerraformLock.objects.exists()
    assert ctx.lines() == []


def test_a_cluster_is_destroyed_also_where_the_job_that_locked_it_is_forgotten(
    locked: Any, terraform: str
) -> None:
    ctx, _, _ = locked
    Deployment.objects.update(variables={"name": "demo"})

    outcome = provision.destroy(ctx, kind="cluster", name="demo")

    assert outcome.summary == "no changes"
    assert Deployment.objects.get().status == "destroyed"
