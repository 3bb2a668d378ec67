"""The row of a deployment while jobs work on it."""

from typing import Any

from audit import clock
from audit.models import Event
from jobworker.models import Deployment
from jobworker.providers import provision
from tests.jobworker.rows import deployment


def test_a_new_status_is_told_once(start: Any) -> None:
    ctx = start()
    one = deployment(ctx, last_job=ctx.job_id)

    for _ in range(2):
        assert provision.update(ctx, one, status=Deployment.Status.FAILED, resources=2)

    event = Event.objects.get()
    assert (event.type, event.subject) == (
        "deployment.failed",
        "deployment:cluster/demo",
    )
    assert event.data == {"job": str(ctx.job_id), "was": "active"}
    assert Deployment.objects.get().resources == 2


def test_a_job_that_was_followed_by_another_writes_nothing(start: Any) -> None:
    ctx = start()
    one = deployment(ctx, last_job=clock.uuid7())

    assert not provision.update(ctx, one, status=Deployment.Status.FAILED)

    assert Deployment.objects.get().status == "active"
    assert not Event.objects.exists()
