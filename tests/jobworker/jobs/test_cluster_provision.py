"""cluster_provision, with the real Terraform."""

from pathlib import Path
from typing import Any

import pytest

from jobworker.models import Deployment, Job, TerraformLock, TerraformState

pytestmark = pytest.mark.usefixtures("terraform")


def test_a_cluster_is_made_and_its_outputs_are_kept(run: Any, job_root: Path) -> None:
    ctx, outcome = run("cluster_provision", name="demo", nodes=2)

    assert outcome.summary == "3 added, 0 changed, 0 destroyed"
    made = Deployment.objects.get(name="demo")
    assert (made.status, made.resources, made.last_job) == ("active", 3, ctx.job_id)
    assert made.outputs["nodes"] == ["demo-0", "demo-1"]
    assert made.secrets() == {"kubeconfig": "token-for-demo"}
    lines = ctx.lines()
    assert "terraform_data.node[1]: (local-exec): node 1 ready" in lines
    assert "outputs: node_ids, nodes, kubeconfig (sensitive)" in lines
    assert not TerraformLock.objects.exists()
    assert TerraformState.objects.exists()
    ref = Job.objects.get(pk=ctx.job_id).external_ref
    assert ref["what"] == "terraform output of deployment demo"
    assert list(job_root.rglob("*")) == []
