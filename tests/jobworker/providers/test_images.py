"""Files that a build made."""

from pathlib import Path
from typing import Any

from jobworker.models import Image
from jobworker.providers import images
from jobworker.providers.packer_lines import Artifact


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
