"""packer_build, with the real Packer."""

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from audit.models import Event
from jobworker.exceptions import InvalidParams, JobFailed, Stopped
from jobworker.jobs import packer_build
from jobworker.models import Image, Job
from jobworker.params import read
from tests import factories
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("packer")


def test_an_image_is_built_and_its_files_are_kept(run: Any, job_root: Path) -> None:
    acme = factories.tenant("acme")
    asked = {
        "tenant": acme,
        "name": "web",
        "version": "2026.11",
        "variables": '{"delay": 0}',
    }

    ctx, outcome = run("packer_build", **asked)

    assert outcome.summary == "2 builds finished, 1 kept as image web 2026.11"
    image = Image.objects.get()
    assert (image.build, image.provider) == ("golden.file.rootfs", "packer.file")
    content = b"image web 2026.11, built offline\n"
    assert image.sha256 == hashlib.sha256(content).hexdigest()
    path = Path(image.files[0]["path"])
    assert path.read_bytes() == content
    assert "    golden.null.check: step 1, unpack" in ctx.lines()
    assert not list(job_root.glob("workspaces/*/*/*/*"))
    assert Event.objects.get().type == "image.built"

    again, _ = run("packer_build", **asked)

    image = Image.objects.get()
    assert image.source_job == again.job_id
    assert not path.exists()
    assert Path(image.files[0]["path"]).read_bytes() == content


def test_builds_that_finished_are_kept_where_another_failed(run: Any) -> None:
    with pytest.raises(JobFailed) as failure:
        run(
            "packer_build",
            name="web",
            version="1",
            variables='{"fail": true, "delay": 0}',
        )

    assert str(failure.value).startswith(
        "1 of 2 builds failed: golden.null.check: Script exited with non-zero exit status: 7"
    )
    result = Job.objects.get().result
    assert [build["build"] for build in result["builds"]] == ["golden.file.rootfs"]
    assert Image.objects.get().build == "golden.file.rootfs"


def test_what_packer_refuses_is_said_before_anything_is_built(run: Any) -> None:
    with pytest.raises(JobFailed, match=r"Invalid value for|[Uu]nsuitable|number"):
        run("packer_build", name="web", version="1", variables='{"delay": "soon"}')

    assert not Image.objects.exists()


def test_cancelling_interrupts_packer_and_keeps_nothing(start: Any) -> None:
    ctx = start("packer_build")
    problems: list[BaseException] = []

    def job() -> None:
        try:
            given = {"name": "web", "version": "1", "variables": '{"delay": 300}'}
            packer_build.run(ctx, read(packer_build.Params, given))
        except BaseException as problem:
            problems.append(problem)
        finally:
            connections.close_all()

    thread = threading.Thread(target=job)
    thread.start()
    seen: list[str] = []

    def at_step_one() -> bool:
        seen.extend(ctx.lines())
        return any("step 1" in line for line in seen)

    wait_until(at_step_one, within=60, what="the first step")
    ctx.stop("cancel")
    thread.join(50)

    [problem] = problems
    assert isinstance(problem, Stopped)
    assert str(problem).startswith(
        "packer build of image web 1 was interrupted (SIGINT) and ended"
    )
    assert not Image.objects.exists()


@pytest.mark.parametrize(
    "given",
    [
        {"name": "web", "version": "../1"},
        {"name": "web", "version": "1;reboot"},
        {"name": "<b>", "version": "1"},
        {"name": "web", "version": "1", "template": "nothing"},
        {"name": "web", "version": "1", "variables": '{"name": "x"}'},
    ],
)
def test_hostile_parameters_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidParams):
        read(packer_build.Params, given)


def test_one_build_of_a_version_at_a_time() -> None:
    params = read(packer_build.Params, {"name": "web", "version": "1"})

    assert packer_build.lock(params) == "image:web:1"
    assert packer_build.subject(params) == "image web 1"
