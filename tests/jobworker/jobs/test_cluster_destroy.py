"""cluster_destroy, with the real Terraform."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from audit.models import Event
from jobworker.exceptions import JobFailed
from jobworker.jobs import cluster_destroy
from jobworker.models import Deployment
from jobworker.providers.provision import SWEEP
from tests import factories
from tests.jobworker.rows import deployment

pytestmark = pytest.mark.usefixtures("terraform")


def test_a_cluster_is_taken_away_and_its_name_can_be_used_again(run: Any) -> None:
    acme = factories.tenant("acme")
    quick = {"tenant": acme, "name": "demo", "variables": '{"delay": 0}'}
    run("cluster_provision", **quick, nodes=3, ttl_hours=1)

    _, outcome = run("cluster_destroy", tenant=acme, name="demo")

    assert outcome.summary == "0 added, 0 changed, 4 destroyed"
    gone = Deployment.objects.get()
    assert (gone.status, gone.resources, gone.outputs) == ("destroyed", 0, {})
    assert (gone.secret_outputs, gone.delete_after) == ("", None)
    assert Event.objects.filter(type="deployment.destroyed").exists()

    _, outcome = run("cluster_destroy", tenant=acme, name="demo")
    assert outcome.summary == "cluster demo is destroyed already"

    _, outcome = run("cluster_provision", **quick, nodes=1)
    assert outcome.summary == "2 added, 0 changed, 0 destroyed"
    assert Deployment.objects.get().status == "active"


def test_one_of_another_tenant_is_not_there(start: Any) -> None:
    deployment(tenant=factories.tenant("other"))
    ctx = start("cluster_destroy", tenant=factories.tenant("acme"))

    with pytest.raises(JobFailed, match=r"^tenant acme has no cluster demo$"):
        cluster_destroy.run(ctx, cluster_destroy.Params(name="demo"))

    assert Deployment.objects.get().status == "active"


def test_a_protected_one_stays(start: Any) -> None:
    ctx = start("cluster_destroy")
    deployment(ctx, protected=True)

    with pytest.raises(JobFailed, match="cluster demo is protected"):
        cluster_destroy.run(ctx, cluster_destroy.Params(name="demo"))

    assert Deployment.objects.get().status == "active"


@pytest.mark.parametrize("until", [None, timedelta(days=1)])
def test_one_whose_time_was_extended_while_the_sweeps_job_waited_stays(
    start: Any, until: timedelta | None
) -> None:
    ctx = start("cluster_destroy", created_by=SWEEP)
    deployment(ctx, delete_after=until and ctx.now + until)

    outcome = cluster_destroy.run(ctx, cluster_destroy.Params(name="demo"))

    assert outcome.summary == "cluster demo stays: its time was extended"
    assert outcome.skipped == 1
    assert Deployment.objects.get().status == "active"


@pytest.mark.parametrize(("by", "left"), [(SWEEP, -1), ("operator", 24)])
def test_one_that_is_over_its_time_or_that_somebody_ends_goes(
    run: Any, by: str, left: int
) -> None:
    acme = factories.tenant("acme")
    run("cluster_provision", tenant=acme, name="demo", variables='{"delay": 0}')
    Deployment.objects.update(delete_after=clock.now() + timedelta(hours=left))

    run("cluster_destroy", tenant=acme, created_by=by, name="demo")

    assert Deployment.objects.get().status == "destroyed"
