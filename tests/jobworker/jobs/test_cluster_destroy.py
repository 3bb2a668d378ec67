"""cluster_destroy, with the real Terraform."""

from typing import Any

import pytest

from audit.models import Event
from jobworker.exceptions import JobFailed
from jobworker.jobs import cluster_destroy
from jobworker.models import Deployment
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
