"""Which programs run, as the node's report tells it."""

import os

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
