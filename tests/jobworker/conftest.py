"""The tests' job types in place of the product's."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from audit import clock
from audit.transcript import Transcript
from jobworker import registry, run, supervisor
from jobworker.attempt import Attempt, Claim
from jobworker.context import JobContext
from jobworker.models import Job
from jobworker.submit import submit
from jobworker.supervisor import Supervisor
from jobworker.weight import Weight
from tests import factories
from tests.processes import Process
from workqueue import connections
from workqueue.models import Tenant


@pytest.fixture
def job_types(settings: Any) -> Iterator[None]:
    """tests.job_types, in this process."""
    settings.JOBWORKER_TYPES = "tests.job_types.JOB_TYPES"
    settings.JOBWORKER_JOBS_PACKAGE = "tests.jobs"
    registry.types.cache_clear()
    yield
    registry.types.cache_clear()


@pytest.fixture
def acme(transactional_db: None) -> Tenant:
    """A tenant."""
    return factories.tenant("acme")


@pytest.fixture
def submitted(acme: Tenant, job_types: None) -> Callable[..., Job]:
    """Submit a job that does what it is told: submitted("log:3", type="act_heavy")."""

    def make(
        does: str = "",
        type: str = "act_light",
        tenant: Tenant | None = None,
        **more: Any,
    ) -> Job:
        lock = more.pop("lock", "")
        return submit(
            type,
            {"does": does, "lock": lock},
            tenant=tenant or acme,
            who="test",
            origin="command",
            **more,
        )

    return make


@pytest.fixture
def attempt(acme: Tenant, job_types: None) -> Callable[..., Attempt]:
    """A running job of this process and its attempt, whose thread nobody started."""

    def make(does: str = "", type: str = "act_light", **values: Any) -> Attempt:
        node = factories.node("jobworker")
        params = {"does": does, "lock": ""}
        job = factories.running_job(acme, node, type, params=params, **values)
        job.refresh_from_db()
        claimed = Claim(job.id, job.type, job.tenant_slug, job.claim_id or job.id)
        transcript, weight = Transcript(claim_id=claimed.claim_id), Weight()
        weight.allow(1)
        weight.take()
        context = JobContext(
            job_id=job.id,
            type=job.type,
            tenant_id=job.tenant_id,
            tenant=job.tenant_slug,
            claim_id=claimed.claim_id,
            node=job.node,
            now=clock.now(),
            deadline=clock.now() + timedelta(seconds=job.time_limit_s),
            transcript=transcript,
            weight=weight,
            save=partial(run.save, job.id, claimed.claim_id),
        )
        deadline = clock.steady() + job.time_limit_s
        return Attempt(job, claimed, context, transcript, deadline)

    return make


@pytest.fixture
def here(
    transactional_db: None, job_types: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Supervisor]:
    """A job worker in this process, without a pool; the test makes its passes."""
    monkeypatch.setattr(connections, "use_pool", lambda **_: None)
    # Its drain ends with its last step: no thread of it may work on in the next test.
    for name in ("LAST", "LEAVE"):
        monkeypatch.setattr(supervisor, name, 60.0)
    one = Supervisor()
    one.prepare()
    yield one
    one.stop()
    one.drain()


@pytest.fixture
def job_worker(spawn: Callable[..., Process]) -> Callable[..., Process]:
    """Start a job worker on the tests' job types, and wait until it claims."""

    def start(**env: str) -> Process:
        process = spawn(
            "runjobworker",
            env={
                "DJANGO_SETTINGS_MODULE": "tests.engine_settings",
                "FALCON_SERVER_KEEP_ALIVE_SECONDS": "2",
                **env,
            },
        )
        process.says("job runner: caps")
        return process

    return start
