"""Which programs run, as the node's report tells it."""

import os
import subprocess
from pathlib import Path

import pytest

from audit import clock
from jobworker import programs

pytestmark = pytest.mark.once


def test_a_program_is_there_while_it_runs() -> None:
    claim = clock.uuid7()
    assert programs.running() == []

    with programs.announced(claim_id=claim, program="packer", pid=os.getpgrp()):
        [one] = programs.running()
        assert (one.claim_id, one.program, one.pid) == (claim, "packer", os.getpgrp())
        assert one.cpu_seconds is not None
        assert one.cpu_seconds > 0

    assert programs.running() == []


def test_where_nobody_knows_its_cpu_time_none_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(programs, "PROC", tmp_path)

    with programs.announced(claim_id=clock.uuid7(), program="packer", pid=1):
        assert programs.running()[0].cpu_seconds is None


@pytest.mark.parametrize("proc", [True, False])
def test_a_program_lives_until_it_has_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, proc: bool
) -> None:
    """Also where there is no /proc; where there is one, before its number is free again."""
    if not proc:
        monkeypatch.setattr(programs, "PROC", tmp_path / "none")
    folder = tmp_path / "link"
    (tmp_path / "real").mkdir()
    folder.symlink_to(tmp_path / "real")
    with subprocess.Popen(["sleep", "60"], cwd=folder) as program:
        assert programs.lives(pid=program.pid, folder=folder)
        assert programs.lives(pid=program.pid, folder=tmp_path) is not proc
        program.kill()
        if proc:
            os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
            assert not programs.lives(pid=program.pid, folder=folder)
    assert not programs.lives(pid=program.pid, folder=folder)


def test_a_program_whose_workspace_was_removed_lives_on(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with subprocess.Popen(["sleep", "60"], cwd=folder) as program:
        folder.rmdir()
        assert programs.lives(pid=program.pid, folder=folder)
        program.kill()
