"""Where programs work."""

import os
import stat
import tracemalloc
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from audit import clock
from jobworker.exceptions import JobFailed
from jobworker.providers import workspace

pytestmark = pytest.mark.once


def make(name: str = "demo", module: str = "offline") -> Path:
    return workspace.make(
        tenant="acme",
        kind="cluster",
        name=name,
        job=clock.uuid7(),
        module=workspace.module("cluster", module),
        now=clock.now(),
    )


@pytest.fixture
def own(settings: Any, tmp_path: Path) -> Path:
    """The folder of a cluster module of the installation's own, named "own"."""
    folder = tmp_path / "modules" / "cluster" / "own"
    folder.mkdir(parents=True)
    (folder / "main.tf").write_text("")
    settings.JOB_MODULES = str(tmp_path / "modules")
    return folder


def age(folder: Path, by: timedelta) -> None:
    moment = (clock.now() - by).timestamp()
    os.utime(folder, (moment, moment))


def test_a_workspace_is_a_copy_of_the_module_for_this_user_only(job_root: Path) -> None:
    folder = make()
    workspace.write(folder, "given.json", {"password": "x"})

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {
        file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()
    } == {
        "main.tf": 0o600,
        "given.json": 0o600,
    }


def test_what_terraform_left_in_a_module_is_not_copied(
    job_root: Path, own: Path
) -> None:
    """A provider may have 600 MB, and init fetches it anew."""
    (own / ".terraform" / "providers").mkdir(parents=True)
    (own / ".terraform.lock.hcl").write_text("its checksum")
    (own / "sub" / ".terraform").mkdir(parents=True)

    folder = make(module="own")

    copied = {str(each.relative_to(folder)) for each in folder.rglob("*")}
    assert copied == {"main.tf", ".terraform.lock.hcl", "sub"}


def test_links_of_a_module_are_followed_wherever_they_lead(
    job_root: Path, own: Path, tmp_path: Path
) -> None:
    for common in (own.parents[1] / "common", tmp_path / "elsewhere"):
        (common / "deep").mkdir(parents=True)
        (common / "deep" / "shared.tf").write_text(common.name)
    (own / "common").symlink_to("../../common")
    (own / "twice").symlink_to("common")
    (own / "elsewhere").symlink_to(tmp_path / "elsewhere")
    (own / "one.tf").symlink_to(tmp_path / "elsewhere" / "deep" / "shared.tf")

    folder = make(module="own")

    for name in ("common", "twice"):
        assert (folder / name / "deep" / "shared.tf").read_text() == "common"
    assert (folder / "elsewhere" / "deep" / "shared.tf").read_text() == "elsewhere"
    assert (folder / "one.tf").read_text() == "elsewhere"
    assert not [each for each in folder.rglob("*") if each.is_symlink()]


@pytest.mark.parametrize("back_to", [".", "..", "../../own"])
def test_a_link_without_an_end_is_named(
    job_root: Path, own: Path, back_to: str
) -> None:
    (own / "sub").mkdir()
    (own / "sub" / "loop").symlink_to(back_to)

    with pytest.raises(JobFailed) as failure:
        make(module="own")

    text = str(failure.value)
    assert "it leads back to a folder that it is in" in text
    assert "loop" in text


def test_a_large_file_of_a_module_is_not_held_in_memory(
    job_root: Path, own: Path
) -> None:
    with (own / "large.bin").open("wb") as file:
        file.truncate(64_000_000)
    tracemalloc.start()

    folder = make(module="own")

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (folder / "large.bin").stat().st_size == 64_000_000
    assert peak < 16_000_000


def test_removing_one_leaves_no_empty_folders_and_nothing_of_others(
    job_root: Path,
) -> None:
    one, other = make(), make("other")

    workspace.remove(one)
    assert other.exists()
    workspace.remove(other)

    assert list((job_root / "workspaces").iterdir()) == []


def test_those_over_their_time_go_and_one_with_the_only_state_stays_longer(
    job_root: Path,
) -> None:
    old, young, errored, lost = make("a1"), make("b1"), make("c1"), make("d1")
    for folder in (errored, lost):
        (folder / workspace.ERRORED).write_text("{}")
    for folder in (old, errored):
        age(folder, timedelta(days=8))
    age(lost, timedelta(days=31))
    assert workspace.errored() == [errored, lost]

    assert workspace.prune(now=clock.now()) == 2

    assert [each.exists() for each in (old, young, errored, lost)] == [
        False,
        True,
        True,
        False,
    ]


def test_an_installations_own_module_comes_before_a_shipped_one(
    settings: Any, tmp_path: Path
) -> None:
    own = tmp_path / "cluster" / "offline"
    own.mkdir(parents=True)
    settings.JOB_MODULES = str(tmp_path)

    assert workspace.module("cluster", "offline") == own


def test_a_module_that_is_not_here_is_named_with_those_that_are() -> None:
    with pytest.raises(JobFailed) as failure:
        workspace.module("database", "../cluster/offline")

    assert str(failure.value) == (
        "There is no database module ../cluster/offline. There are offline."
    )


def test_a_root_that_is_no_folder_is_said(job_root: Path) -> None:
    job_root.write_text("a file")

    with pytest.raises(
        JobFailed, match="its workspace below JOB_ROOT could not be made"
    ):
        make()


def test_only_what_lies_where_workspaces_lie_is_one(job_root: Path) -> None:
    inside = job_root / "workspaces" / "acme"

    assert workspace.is_one(inside)
    for folder in (Path("/etc"), inside / ".." / ".." / "images", inside.parent):
        assert not workspace.is_one(folder)
