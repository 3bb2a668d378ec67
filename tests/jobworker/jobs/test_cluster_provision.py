"""cluster_provision, with the real Terraform."""

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from audit.models import Event
from jobworker.exceptions import InvalidParams, JobFailed, Stopped
from jobworker.jobs import cluster_provision
from jobworker.models import Deployment, Job, TerraformLock, TerraformState
from jobworker.params import read
from jobworker.providers import process
from tests import factories
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("terraform")
VARIABLES = 'variable "name" {}\nvariable "nodes" {}\n'


def test_a_cluster_is_made_changed_and_left_alone(run: Any, job_root: Path) -> None:
    acme = factories.tenant("acme")

    ctx, outcome = run("cluster_provision", tenant=acme, name="demo", nodes=2)

    assert outcome.summary == "3 added, 0 changed, 0 destroyed"
    made = Deployment.objects.get(name="demo")
    assert (made.status, made.resources, made.last_job) == ("active", 3, ctx.job_id)
    assert made.outputs["nodes"] == ["demo-0", "demo-1"]
    assert "kubeconfig" not in made.outputs
    assert made.secrets() == {"kubeconfig": "token-for-demo"}
    lines = ctx.lines()
    assert "terraform_data.node[1]: (local-exec): node 1 ready" in lines
    assert "outputs: node_ids, nodes, kubeconfig (sensitive)" in lines
    assert ctx.sign.phase == "apply, 3 of 3 resources"
    assert not TerraformLock.objects.exists()
    ref = Job.objects.get(pk=ctx.job_id).external_ref
    assert ref["what"] == "terraform apply of deployment demo"
    assert [path for path in job_root.rglob("*") if path.is_file()] == []
    told = Event.objects.filter(subject="deployment:cluster/demo").order_by("id")
    assert [event.type for event in told] == ["deployment.active"]

    _, outcome = run("cluster_provision", tenant=acme, name="demo", nodes=2)

    assert outcome.summary == "no changes"

    _, outcome = run(
        "cluster_provision", tenant=acme, name="demo", nodes=3, ttl_hours=2
    )

    assert outcome.summary == "1 added, 0 changed, 0 destroyed"
    made.refresh_from_db()
    assert (made.resources, made.variables["nodes"]) == (4, 3)
    assert made.delete_after is not None


def test_a_failing_node_is_named_and_what_was_made_stays_in_the_state(
    run: Any, job_root: Path
) -> None:
    with pytest.raises(JobFailed) as failure:
        run("cluster_provision", name="demo", variables='{"fail": true, "delay": 0}')

    text = str(failure.value)
    assert "local-exec provisioner error in terraform_data.node[1]" in text
    assert "exit status 3. Output: node 1: quota exceeded" in text
    assert text.endswith("; state has 3 resources (1 tainted, replaced next time)")
    left = Deployment.objects.get(name="demo")
    assert (left.status, left.resources) == ("failed", 3)
    assert not TerraformLock.objects.exists()
    [workspace] = job_root.glob("workspaces/*/cluster/demo/*")
    given = workspace / "terraform.tfvars.json"
    assert stat.S_IMODE(given.stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.stat().st_mode) == 0o700


def test_a_name_that_slipped_through_is_refused_by_the_module(start: Any) -> None:
    ctx = start("cluster_provision")

    with pytest.raises(JobFailed) as failure:
        cluster_provision.run(ctx, cluster_provision.Params(name="BAD"))

    assert str(failure.value).startswith(
        "Invalid value for variable: name must be lower-case letters, digits and hyphens."
    )
    assert str(failure.value).endswith("; state has 0 resources")
    assert Deployment.objects.get().status == "failed"


def test_a_refused_plan_leaves_an_active_cluster_as_it_was(run: Any) -> None:
    acme = factories.tenant("acme")
    run(
        "cluster_provision", tenant=acme, name="demo", nodes=1, variables='{"delay": 0}'
    )

    with pytest.raises(JobFailed):
        run("cluster_provision", tenant=acme, name="demo", variables='{"delay": "x"}')

    kept = Deployment.objects.get(name="demo")
    assert (kept.status, kept.variables["nodes"]) == ("active", 1)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"name": "BAD"},
            "name: “BAD” cannot be used. Enter 2 to 31 lower-case letters",
        ),
        ({"name": "a" * 500}, "name: "),
        ({"name": "$(reboot)"}, "name: "),
        ({"name": "../../etc"}, "name: "),
        ({"name": "a-b\n"}, ""),
        ({"name": "demo", "nodes": "0"}, "nodes: "),
        ({"name": "demo", "module": "../../etc"}, "module: "),
        (
            {"name": "demo", "module": "nothing"},
            "module: There is no cluster module nothing. There are offline.",
        ),
        ({"name": "demo", "variables": "[1]"}, "variables: Enter a JSON object"),
        ({"name": "demo", "variables": "{"}, "variables: Enter a JSON object"),
        ({"name": "demo", "variables": '{"x": NaN}'}, "variables: "),
        (
            {"name": "demo", "variables": '{"nodes": 7}'},
            "variables: Give nodes as a parameter of its own.",
        ),
    ],
)
def test_hostile_parameters_are_refused_in_a_sentence(
    given: dict[str, Any], problem: str
) -> None:
    if not problem:
        assert read(cluster_provision.Params, given).name == given["name"].strip()
        return
    with pytest.raises(InvalidParams) as refusal:
        read(cluster_provision.Params, given)
    assert str(refusal.value).startswith(problem)


def test_cancelling_interrupts_terraform_and_says_what_is_there(
    start: Any, terraform: str
) -> None:
    ctx = start("cluster_provision")
    problems: list[BaseException] = []

    def job() -> None:
        try:
            given = {"name": "demo", "variables": '{"delay": 300}'}
            cluster_provision.run(ctx, read(cluster_provision.Params, given))
        except BaseException as problem:
            problems.append(problem)
        finally:
            connections.close_all()

    thread = threading.Thread(target=job)
    thread.start()
    seen: list[str] = []

    def booting() -> bool:
        seen.extend(ctx.lines())
        return any("booting node 1" in line for line in seen)

    wait_until(booting, within=60, what="a node that boots")
    ctx.stop("cancel")
    thread.join(50)

    [problem] = problems
    assert isinstance(problem, Stopped)
    assert str(problem) == (
        "terraform apply of deployment demo was interrupted (SIGINT) and ended"
        " with exit code 1; state has 3 resources (2 tainted, replaced next time)"
    )
    assert ctx.sign.phase == "apply, 1 of 3 resources, 2 failed"
    assert ctx.sign.progress == 33
    left = Deployment.objects.get()
    assert (left.status, left.resources) == ("failed", 3)
    assert not TerraformLock.objects.exists()


def test_a_second_job_is_told_who_holds_the_lock(start: Any, run: Any) -> None:
    acme = factories.tenant("acme")
    ctx, _ = run(
        "cluster_provision", tenant=acme, name="demo", variables='{"delay": 0}'
    )
    lock = TerraformLock.objects.create(
        deployment=Deployment.objects.get(),
        lock_id="x",
        job=ctx.job_id,
        claim_id=ctx.claim_id,
        created_at=ctx.now,
    )

    with pytest.raises(JobFailed) as failure:
        run("cluster_provision", tenant=acme, name="demo")

    assert str(failure.value) == (
        f"deployment demo is locked by job {ctx.job_id} since {lock.created_at:%H:%M:%SZ}"
    )
    Job.objects.filter(pk=ctx.job_id).update(status=Job.Status.FAILED)

    with pytest.raises(JobFailed, match="adopt that job to take over what it left"):
        run("cluster_provision", tenant=acme, name="demo")

    assert Deployment.objects.get().status == "active"


def test_without_terraform_the_job_says_what_to_install(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.shutil, "which", lambda _: None)

    with pytest.raises(JobFailed) as failure:
        cluster_provision.run(start(), cluster_provision.Params(name="demo"))

    assert str(failure.value) == (
        "terraform is not on PATH of w-1, 1; install it or set heavy to 0"
    )
    assert not Deployment.objects.exists()


@pytest.fixture
def module(settings: Any, tmp_path: Path) -> Any:
    """Write the main.tf of a cluster module: module("loud", text)."""
    settings.JOB_MODULES = str(tmp_path / "modules")

    def write(name: str, text: str) -> None:
        folder = tmp_path / "modules" / "cluster" / name
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(VARIABLES + text)

    return write


def test_outputs_of_any_length_and_kind_are_kept(run: Any, module: Any) -> None:
    """Terraform prints each on one line, and of a long line we keep the beginning."""
    long, key = "x" * 300_000, "k" * 300_000
    module(
        "long",
        f"""
output "long" {{ value = "{long}" }}
output "key" {{
  value     = {{ inner = "{key}", none = null }}
  sensitive = true
}}
output "mixed" {{ value = {{ list = [1, "a"], yes = true, none = null }} }}
output "none" {{ value = null }}
""",
    )
    acme = factories.tenant("acme")
    asked = {"tenant": acme, "name": "demo", "module": "long"}

    for summary in ("0 added, 0 changed, 0 destroyed", "no changes"):
        Deployment.objects.update(outputs={}, secret_outputs="")
        ctx, outcome = run("cluster_provision", **asked)

        assert outcome.summary == summary
        made = Deployment.objects.get()
        assert made.status == "active"
        assert made.outputs.pop("long").startswith(long[:30_000])  # as all text
        assert made.outputs == {
            "mixed": {"list": [1, "a"], "yes": True, "none": None},
        }
        assert made.secrets() == {"key": {"inner": key, "none": None}}
        assert "outputs: long, mixed, key (sensitive)" in ctx.lines()


def test_what_a_module_prints_is_text_and_its_secrets_are_masked(
    run: Any, module: Any
) -> None:
    module(
        "loud",
        """
resource "terraform_data" "loud" {
  provisioner "local-exec" {
    command = "printf '<script>alert(1)</script> \\\\033[31mred \\\\000 password=hunter2\\\\n'"
  }
}
output "key" {
  value     = "sesame-open-please"
  sensitive = true
}
""",
    )
    acme = factories.tenant("acme")

    ctx, _ = run("cluster_provision", tenant=acme, name="demo", module="loud")
    ctx.log("the key is sesame-open-please")

    lines = ctx.lines()
    assert any("<script>alert(1)</script>" in line for line in lines)
    assert not any("hunter2" in line or "\0" in line for line in lines[:-1])
    assert lines[-1] == "the key is ••••"
    bodies = TerraformState.objects.all()
    assert json.loads(bodies[0].body)["outputs"]
