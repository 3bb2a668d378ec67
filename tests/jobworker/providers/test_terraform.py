"""What is known of a deployment without asking Terraform."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobworker.exceptions import JobFailed
from jobworker.providers import process, state, terraform
from jobworker.providers.terraform import Kept
from tests.jobworker.rows import deployment


def test_the_state_tells_what_is_there_and_what_is_tainted(start: Any) -> None:
    ctx = start()
    one = deployment(ctx)
    assert terraform.kept(ctx, one) == Kept()
    resources = [
        {"mode": "managed", "instances": [{}, {"status": "tainted"}]},
        {"mode": "data", "instances": [{}]},
    ]
    document = {"serial": 1, "resources": resources}

    state.store(
        one.pk, body=json.dumps(document).encode(), document=document, job_id=ctx.job_id
    )

    assert terraform.kept(ctx, one).words == (
        "state has 2 resources (1 tainted, replaced next time)"
    )
    assert Kept(resources=1).words == "state has 1 resource"


def test_a_terraform_that_is_too_old_is_refused(
    start: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "terraform"
    old.write_text("#!/bin/sh\necho Terraform v1.3.9\n")
    old.chmod(0o755)
    monkeypatch.setattr(process.shutil, "which", lambda _: str(old))

    with pytest.raises(
        JobFailed, match=r"Terraform v1.3.9 on w-1, 1 is too old; install 1.4"
    ):
        terraform.find(start())


def test_it_is_given_no_more_than_it_needs(settings: Any, tmp_path: Path) -> None:
    settings.TF_PLUGIN_CACHE_DIR = "/var/cache/terraform"

    env = terraform.environment(tmp_path, {"TF_HTTP_ADDRESS": "http://127.0.0.1:1"})

    assert set(env) == {
        "PATH",
        "HOME",
        "LANG",
        "TF_IN_AUTOMATION",
        "TF_INPUT",
        "CHECKPOINT_DISABLE",
        "TF_PLUGIN_CACHE_DIR",
        "TF_HTTP_ADDRESS",
    }
