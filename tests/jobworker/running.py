"""Fixtures: a job that runs, without a supervisor. Used by the tests of jobs and providers."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from audit import clock
from audit.transcript import Closed, Transcript
from jobworker import params, registry
from jobworker.context import JobContext
from jobworker.models import Job
from jobworker.weight import Weight
from tests import factories
from workqueue.models import Tenant

type Start = Callable[..., JobContext]


class RunningJob(JobContext):
    """A JobContext whose lines can be read."""

    def lines(self) -> list[str]:
        return [line.text for line in self._transcript.take()]

    def closed(self) -> Closed:
        return self._transcript.close()


@pytest.fixture
def job_root(settings: Any, tmp_path: Path) -> Path:
    """Where workspaces lie."""
    settings.JOB_ROOT = tmp_path / "jobs"
    return settings.JOB_ROOT


@pytest.fixture
def start(transactional_db: None, job_root: Path) -> Start:
    """A running job and what its module is given: start("cluster_provision", name="demo")."""

    def begin(
        type: str = "cluster_provision",
        *,
        tenant: Tenant | None = None,
        created_by: str = "operator",
        **given: Any,
    ) -> RunningJob:
        tenant = tenant or factories.tenant()
        now = clock.now()
        job = Job.objects.create(
            tenant=tenant,
            tenant_slug=tenant.slug,
            type=type,
            tier="heavy",
            params=given,
            time_limit_s=3600,
            status=Job.Status.RUNNING,
            created_at=now,
            created_by=created_by,
            origin="admin",
            claim_id=clock.uuid7(),
            node_id=clock.uuid7(),
            node="w-1, 1",
            started_at=now,
        )

        def save(column: str, value: dict[str, Any]) -> None:
            Job.objects.filter(pk=job.pk).update(**{column: value})

        assert isinstance(job.claim_id, UUID)
        return RunningJob(
            job_id=job.pk,
            type=type,
            tenant_id=tenant.pk,
            tenant=tenant.slug,
            claim_id=job.claim_id,
            node="w-1, 1",
            now=now,
            deadline=now + timedelta(hours=1),
            transcript=Transcript(claim_id=job.claim_id),
            weight=Weight(),
            save=save,
            created_by=created_by,
        )

    return begin


@pytest.fixture
def run(start: Start) -> Callable[..., Any]:
    """Start and run a job: run("cluster_provision", name="demo") -> (ctx, outcome)."""

    def go(type: str, **given: Any) -> Any:
        about = {
            key: given.pop(key) for key in ("tenant", "created_by") if key in given
        }
        ctx = start(type, **about, **given)
        module = registry.module(type)
        return ctx, module.run(ctx, params.read(module.Params, given))

    return go


@pytest.fixture(scope="session")
def terraform() -> str:
    found = shutil.which("terraform")
    if found is None:
        pytest.skip("terraform is not on PATH; install it to run its jobs")
    return found


@pytest.fixture(scope="session")
def packer() -> str:
    found = shutil.which("packer")
    if found is None:
        pytest.skip("packer is not on PATH; install it to run its jobs")
    return found
