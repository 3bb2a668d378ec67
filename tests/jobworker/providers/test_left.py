"""What a broken job left, without Terraform."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobworker.models import TerraformState
from jobworker.providers import left, state, workspace
from tests.jobworker.rows import deployment


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("no json", "is damaged and was left alone"),
        (json.dumps({"serial": 9, "lineage": "b"}), "is of another state"),
        (
            json.dumps({"serial": 3, "lineage": "a"}),
            "is no newer than the stored state",
        ),
    ],
)
def test_an_errored_state_that_does_not_fit_is_left_alone(
    start: Any, job_root: Path, content: str, note: str
) -> None:
    ctx = start("cluster_provision")
    one = deployment(ctx)
    stored = {"serial": 3, "lineage": "a"}
    state.store(
        one.pk, body=json.dumps(stored).encode(), document=stored, job_id=ctx.job_id
    )
    folder = job_root / "workspaces" / "acme" / "cluster" / "demo" / "x"
    folder.mkdir(parents=True)
    (folder / workspace.ERRORED).write_text(content)

    [told] = left.take_over(ctx, one, folder)

    assert note in told
    assert TerraformState.objects.get().serial == 3
    assert (folder / workspace.ERRORED).exists()
