"""Files that a build made."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from audit import ledger
from audit.models import Event
from jobworker.exceptions import JobFailed
from jobworker.models import Image, Job
from jobworker.providers import images, patient
from jobworker.providers.packer_lines import Artifact
from tests import factories

type Keep = Callable[..., Image]


@pytest.fixture
def built(start: Any, tmp_path: Path) -> Keep:
    """Keep what a build of one tenant left: built("a/disk.img")."""
    acme = factories.tenant("acme")

    def keep(*names: str) -> Image:
        folder = tmp_path / "workspace"
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"bytes of {name}")
        return images.keep(
            start("packer_build", tenant=acme),
            name="web",
            version="1",
            artifact=Artifact(build="b", files=list(names)),
            workspace=folder,
        )

    return keep


def test_a_file_outside_the_workspace_is_named_and_left_alone(
    start: Any, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not yours")
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    named = [str(outside), "../outside", "link", "missing"]

    images.keep(
        start("packer_build"),
        name="web",
        version="1",
        artifact=Artifact(build="b", provider="p", external_id="ami-1", files=named),
        workspace=folder,
    )

    image = Image.objects.get()
    assert [file["path"] for file in image.files] == named
    assert (image.sha256, image.external_id) == ("", "ami-1")
    assert outside.read_text() == "not yours"


def test_a_restart_of_the_database_loses_no_file(
    built: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patient, "LOOK_AGAIN", 0.001)
    away, tell = [True, True], ledger.event

    def event(**told: Any) -> None:
        tell(**told)
        if away:
            away.pop()
            raise OperationalError("the database is being restarted")

    monkeypatch.setattr(ledger, "event", event)

    built("disk.img")

    image = Image.objects.get()
    assert image.sha256 == hashlib.sha256(b"bytes of disk.img").hexdigest()
    [file] = image.files
    assert (file["size"], file["sha256"]) == (17, image.sha256)
    assert Path(file["path"]).read_text() == "bytes of disk.img"
    assert Event.objects.count() == 1


def test_two_files_of_one_name_are_both_kept(built: Keep) -> None:
    image = built("a/disk.img", "b/disk.img")

    kept = [Path(file["path"]).read_text() for file in image.files]
    assert kept == ["bytes of a/disk.img", "bytes of b/disk.img"]


def test_a_build_that_was_ended_takes_no_place_of_another(
    built: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built("disk.img")
    monkeypatch.setattr(images, "_kept", ended(images._kept))

    with pytest.raises(JobFailed, match=r"its claim is gone: it writes nothing more"):
        built("disk.img")

    image = Image.objects.get()
    assert image.source_job == first.source_job
    assert Path(image.files[0]["path"]).read_text() == "bytes of disk.img"


def ended(kept: Callable[..., Any]) -> Callable[..., Any]:
    """While a file is moved, somebody else takes the worker for dead."""

    def lose_and_keep(*args: Any) -> Any:
        Job.objects.running().update(status=Job.Status.FAILED)
        return kept(*args)

    return lose_and_keep
