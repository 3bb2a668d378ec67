"""The tests' job types in place of the product's."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobworker import registry
from jobworker.models import Job
from jobworker.submit import submit
from tests import factories
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
