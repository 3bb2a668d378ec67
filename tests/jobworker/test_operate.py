"""What an operator does to jobs."""

from collections.abc import Callable

import pytest

from audit import clock
from audit.models import Change, Run
from jobworker import operate
from jobworker.exceptions import CannotAdopt
from jobworker.models import Job
from tests import factories
from workqueue.models import Tenant

Submit = Callable[..., Job]


def test_a_waiting_job_is_cancelled_at_once_with_its_run(submitted: Submit) -> None:
    job = submitted()
    assert operate.cancel(job, who="ann", origin="command", why="wrong")
    job.refresh_from_db()
    assert (job.status, job.summary) == ("cancelled", "cancelled by ann: wrong")
    assert job.finished_at is not None
    run = Run.objects.get(dedup_key=str(job.id))
    assert (run.kind, run.outcome, run.claimed_at) == ("job", "cancelled", None)
    change = Change.objects.get(verb="cancelled")
    assert (change.who, change.old, change.new) == (
        "ann",
        {"status": "pending"},
        {"status": "cancelled"},
    )
    assert not operate.cancel(job, who="ann", origin="command", why="again")


def test_a_running_job_is_told_to_stop_once(acme: Tenant) -> None:
    job = factories.running_job(acme, factories.node("jobworker"))
    assert operate.cancel(job, who="ann", origin="command", why="")
    assert not operate.cancel(job, who="bob", origin="command", why="")
    job.refresh_from_db()
    assert (job.status, job.cancel_requested_by) == ("running", "ann")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"status": "running"}, "It has not ended."),
        ({"status": "succeeded"}, "It succeeded"),
        ({"external_ref": None}, "It began nothing outside"),
        ({"type": "act_light"}, "What act_light begins ends with its worker."),
        ({"type": "gone"}, "This release knows no job type gone."),
    ],
)
def test_what_cannot_be_adopted_says_why(
    acme: Tenant, job_types: None, values: dict[str, object], why: str
) -> None:
    node = factories.node("jobworker")
    broken = {
        "type": "act_follows",
        "status": "failed",
        "finished_at": clock.now(),
        "error_code": "abandoned",
        "external_ref": {"what": "an export"},
    }
    job = factories.running_job(acme, node, **{**broken, **values})
    assert operate.adoptable(job).startswith(why)
    with pytest.raises(CannotAdopt):
        operate.adopt(job, who="ann", origin="command", why="")


def test_adopting_makes_a_job_with_the_same_reference_and_says_so(
    acme: Tenant, job_types: None
) -> None:
    job = factories.running_job(
        acme,
        factories.node("jobworker"),
        type="act_follows",
        status="failed",
        finished_at=clock.now(),
        error_code="drained",
        external_ref={"what": "an export"},
    )
    heir = operate.adopt(job, who="ann", origin="command", why="it goes on")
    assert (heir.adopts_id, heir.external_ref) == (job.id, {"what": "an export"})
    assert Change.objects.get(verb="adopted").new["adopts"] == str(job.id)  # type: ignore[index]
    assert operate.adoptable(job) == f"Job {heir.id} has adopted it already."


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_whatever_ended_it_a_job_that_may_hold_a_lock_can_be_adopted(
    acme: Tenant, job_types: None, status: str
) -> None:
    """A Terraform that had to be killed gave no lock back: nothing else takes it away."""
    job = factories.running_job(
        acme,
        factories.node("jobworker"),
        type="act_follows",
        status=status,
        error_code=status,
        finished_at=clock.now(),
        external_ref={"what": "an apply"},
    )
    assert operate.adoptable(job) == ""
