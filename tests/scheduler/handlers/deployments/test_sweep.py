"""deployments.sweep: one sweep at a time."""

from typing import Any

import pytest

from jobworker.models import Job
from scheduler.handlers.deployments import sweep
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_sweep_is_submitted_for_the_platform(ctx: Any) -> None:
    outcome = sweep.run(ctx())

    job = Job.objects.get()
    assert (job.type, job.tier, job.exclusive) == (
        "autodelete_sweep",
        "light",
        "autodelete_sweep",
    )
    assert job.tenant == factories.platform()
    assert (outcome.changed, outcome.summary) == (1, f"submitted job {job.id}")


def test_while_one_is_unfinished_the_next_is_skipped_and_counted(ctx: Any) -> None:
    sweep.run(ctx())

    outcome = sweep.run(ctx())

    assert (outcome.word, outcome.skipped) == ("succeeded", 1)
    assert Job.objects.count() == 1

    Job.objects.update(status=Job.Status.SUCCEEDED)
    assert sweep.run(ctx()).changed == 1
