"""What Packer says, against recordings of it."""

from pathlib import Path
from typing import Any

import pytest

from jobworker.providers.packer_lines import Artifact, Said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def said(start: Any, shared: Path) -> Any:
    def read(name: str) -> Said:
        found = Said(ctx=start())
        for line in (shared / "data" / "packer" / name).read_text().splitlines():
            found.line(line)
        return found

    return read


def test_the_artifacts_of_each_build_are_found(said: Any) -> None:
    found = said("build_ok.csv")

    assert found.artifacts == {
        "golden.file.rootfs": Artifact(
            build="golden.file.rootfs",
            provider="packer.file",
            external_id="File",
            files=["build/web1.img", "build/web1.sha256"],
        ),
        "golden.null.check": Artifact(
            build="golden.null.check", provider="fnoeding.null", external_id="Null"
        ),
    }
    assert [each.is_image for each in found.artifacts.values()] == [True, False]
    assert (found.error, found.cancelling) == ("", False)


def test_what_it_says_is_logged_without_its_escapes_and_stamps(said: Any) -> None:
    lines = said("build_ok.csv").ctx.lines()

    assert "    golden.null.check: step 1, with a comma" in lines
    assert "==> Builds finished. The artifacts of successful builds are:" in lines
    assert not [line for line in lines if line.startswith("2026")]


def test_steps_are_phases_and_finished_builds_progress(said: Any) -> None:
    sign = said("build_ok.csv").ctx.sign

    names = [phase["name"] for phase in sign.phases]
    assert names[0] == "golden.file.rootfs: Running post-processor:  (type checksum)"
    assert sign.progress == 99


@pytest.mark.parametrize(
    ("stopped", "second", "progress"),
    [
        (False, "finished", 99),
        (False, "errored", 50),
        # Told to stop, Packer says "finished" of what it breaks off.
        (True, "finished", 50),
    ],
)
def test_a_build_that_broke_off_is_no_progress(
    start: Any, stopped: bool, second: str, progress: int
) -> None:
    found = Said(ctx=start())
    found.line("1,,ui,say,==> a.b: begins")
    found.line("1,,ui,say,==> c.d: begins")
    found.line("1,,ui,say,Build 'a.b' finished after 1 second.")
    if stopped:
        found.line("1,,ui,say,Cancelling build after receiving interrupt")
    found.line(f"1,,ui,say,Build 'c.d' {second} after 1 second.")

    assert found.ctx.sign.progress == progress


def test_a_missing_variable_is_the_error_of_validate(said: Any) -> None:
    found = said("validate_missing_var.csv")

    assert found.error.startswith('Unset variable "name" A used variable must be set')


def test_failed_builds_are_counted_beside_those_that_finished(start: Any) -> None:
    found = Said(ctx=start())
    for line in (
        "1,,error-count,1",
        "1,golden.null.check,error,Script exited with non-zero exit status: 7",
        "1,golden.file.rootfs,artifact-count,3",
        "1,golden.file.rootfs,artifact,0,builder-id,packer.file",
    ):
        found.line(line)

    assert found.error == (
        "1 of 2 builds failed: golden.null.check: Script exited with non-zero exit status: 7"
    )


def test_an_interrupt_is_seen(start: Any) -> None:
    found = Said(ctx=start())

    found.line("1,,ui,say,Cancelling build after receiving interrupt")

    assert found.cancelling


@pytest.mark.parametrize(
    "line",
    ["panic: something", ",,,", "1,,ui", "1,x,artifact,0", "1,,error-count,many"],
)
def test_no_line_whatever_it_holds_stops_the_reading(start: Any, line: str) -> None:
    Said(ctx=start()).line(line)
