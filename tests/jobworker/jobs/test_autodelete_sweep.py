"""autodelete_sweep: what is over its time is ended, its owners are warned before."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from audit import clock
from audit.models import Event
from jobworker.exceptions import JobError
from jobworker.jobs import autodelete_sweep
from jobworker.models import Deployment, Job
from jobworker.submit import submit
from tests import factories
from tests.jobworker.rows import deployment, lose_key
from workqueue.models import Tenant

HOUR = timedelta(hours=1)


@pytest.fixture
def sweep(start: Any) -> Any:
    def run() -> Any:
        ctx = start("autodelete_sweep", tenant=factories.platform())
        return autodelete_sweep.run(ctx, autodelete_sweep.Params())

    return run


@pytest.fixture
def acme(transactional_db: None) -> Tenant:
    return factories.tenant("acme")


def destroys() -> Any:
    return Job.objects.filter(type="cluster_destroy")


def test_at_most_twenty_are_ended_a_sweep_and_the_rest_by_the_next(
    sweep: Any, acme: Tenant
) -> None:
    """25 over their time: one protected, two being destroyed already."""
    over = clock.now() - HOUR
    for number in range(25):
        deployment(tenant=acme, name=f"d-{number:02}", delete_after=over)
    Deployment.objects.filter(name="d-00").update(protected=True)
    for name in ("d-01", "d-02"):
        submit("cluster_destroy", {"name": name}, tenant=acme, who="a", origin="admin")

    first = sweep()

    assert destroys().count() == 22
    assert (first.changed, first.skipped, first.failed) == (20, 4, 0)
    assert first.summary == "20 submitted, 4 waiting"

    sweep()

    assert destroys().count() == 24
    assert set(destroys().values_list("created_by", flat=True)) == {
        "a",
        "autodelete_sweep",
    }
    assert not destroys().filter(params__name="d-00").exists()


def test_owners_are_warned_once_a_day_and_once_an_hour_ahead(
    sweep: Any, acme: Tenant
) -> None:
    now = clock.now()
    one = deployment(tenant=acme, delete_after=now + 23 * HOUR)
    deployment(tenant=acme, name="later", delete_after=now + 25 * HOUR)
    deployment(tenant=acme, name="kept", delete_after=now + HOUR / 2, protected=True)

    def told() -> list[tuple[str, str]]:
        events = Event.objects.filter(type="deployment.expiring").order_by("id")
        return [(event.subject, event.data["within"]) for event in events]

    sweep()
    sweep()
    assert told() == [("deployment:cluster/demo", "a day")]

    Deployment.objects.filter(pk=one.pk).update(delete_after=now + 24 * HOUR - HOUR / 2)
    sweep()
    assert len(told()) == 2  # a deadline that was moved is warned of again

    Deployment.objects.filter(pk=one.pk).update(delete_after=now + HOUR / 2)
    sweep()
    sweep()
    assert told()[2:] == [("deployment:cluster/demo", "an hour")]
    assert not destroys().exists()


def test_one_that_fails_is_recorded_and_the_others_go_on(
    sweep: Any, acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = clock.now() - HOUR
    for number in range(autodelete_sweep.AT_ONCE):
        deployment(tenant=acme, name=f"bad-{number:02}", delete_after=over - HOUR)
    deployment(tenant=acme, name="good-one", delete_after=over)
    real = submit

    def sometimes(type: str, params: Any, **more: Any) -> Job:
        if params["name"] != "good-one":
            raise JobError("it cannot be submitted")
        return real(type, params, **more)

    monkeypatch.setattr(autodelete_sweep, "submit", sometimes)

    outcome = sweep()

    assert (outcome.changed, outcome.failed) == (1, autodelete_sweep.AT_ONCE)
    assert outcome.error == "acme: cluster bad-00: JobError: it cannot be submitted"
    assert destroys().get().params == {"name": "good-one"}


@pytest.fixture
def refused(acme: Tenant) -> Any:
    """Twenty-one over their time, of which all but the youngest failed to be destroyed."""

    def fail(ago: timedelta) -> None:
        destroys().unfinished().filter(params__name__startswith="bad").update(
            status=Job.Status.FAILED, finished_at=clock.now() - ago
        )

    over = clock.now() - 24 * HOUR
    for number in range(autodelete_sweep.AT_ONCE):
        deployment(tenant=acme, name=f"bad-{number:02}", delete_after=over - HOUR)
    deployment(tenant=acme, name="good-one", delete_after=over)
    return fail


def test_those_that_cannot_be_destroyed_do_not_keep_out_the_others(
    sweep: Any, refused: Any
) -> None:
    assert sweep().summary == "20 submitted, 1 waiting"
    refused(ago=timedelta(minutes=9))

    outcome = sweep()

    assert outcome.summary == "1 submitted, 20 waiting, 20 orphaned"
    assert destroys().unfinished().get().params == {"name": "good-one"}
    assert outcome.details["orphans"][0].startswith(
        "cluster bad-00 of acme is over its time and its destroy job failed at "
    )

    assert sweep().changed == 0  # and not one of them every ten minutes


def test_one_that_could_not_be_destroyed_is_tried_again_after_those_that_were_not(
    sweep: Any, refused: Any
) -> None:
    sweep()
    refused(ago=autodelete_sweep.AGAIN_AFTER)

    sweep()

    again = destroys().unfinished()
    assert again.count() == autodelete_sweep.AT_ONCE
    assert again.filter(params__name="good-one").exists()


def test_what_nobody_owns_is_listed_and_left_alone(
    sweep: Any, acme: Tenant, job_root: Path
) -> None:
    gone = factories.tenant("gone")
    over = clock.now() - HOUR
    deployment(tenant=gone, resources=3, delete_after=over)
    gone.delete()
    deployment(
        tenant=acme, name="half", resources=1, status="failed", delete_after=over
    )
    errored = (
        job_root / "workspaces" / "acme" / "cluster" / "x" / "y" / "errored.tfstate"
    )
    errored.parent.mkdir(parents=True)
    errored.write_text("{}")

    outcome = sweep()

    assert outcome.summary == "3 orphaned"
    assert outcome.details["orphans"] == [
        "cluster demo of the removed tenant gone: 3 resources",
        "cluster half of acme failed and is over its time: destroy it by hand",
        f"{errored.parent}: errored.tfstate was never taken over; adopt its job",
    ]
    assert not destroys().exists()


def test_what_looks_alive_without_a_live_job_counts_as_failed_and_is_listed(
    sweep: Any, start: Any, acme: Tenant
) -> None:
    busy = start("cluster_provision", tenant=acme)
    over = clock.now() - HOUR
    alive = {"status": "provisioning", "last_job": busy.job_id}
    deployment(tenant=acme, name="alive", delete_after=over, **alive)
    for name, status in (("half", "provisioning"), ("other", "destroying")):
        deployment(
            tenant=acme,
            name=name,
            status=status,
            last_job=clock.uuid7(),
            delete_after=over,
        )

    outcome = sweep()

    assert outcome.details["orphans"] == [
        "cluster half of acme failed and is over its time: destroy it by hand",
        "cluster other of acme failed and is over its time: destroy it by hand",
    ]
    assert Deployment.objects.get(name="alive").status == "provisioning"
    assert Event.objects.filter(type="deployment.failed").count() == 2
    assert not destroys().exists()


def test_with_nothing_to_do_it_says_so(sweep: Any) -> None:
    assert sweep().summary == "nothing is over its time"


def test_secrets_that_no_key_opens_stop_no_sweep(
    sweep: Any, acme: Tenant, settings: Any
) -> None:
    now = clock.now()
    deployment(tenant=acme, name="over", delete_after=now - HOUR)
    deployment(tenant=acme, name="soon", delete_after=now + HOUR / 2)
    deployment(tenant=acme, name="half", status="destroying", resources=3)
    lose_key(settings)

    outcome = sweep()

    assert outcome.failed == 0
    assert outcome.summary == "1 submitted, 1 warned"
    left = Deployment.objects.get(name="half")
    assert (left.status, left.resources) == ("failed", 3)
