"""Packer where it is missing."""

from typing import Any

import pytest

from jobworker.exceptions import JobFailed
from jobworker.providers import packer, process


def test_without_packer_the_job_says_what_to_install(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.shutil, "which", lambda _: None)

    with pytest.raises(
        JobFailed, match="packer is not on PATH of w-1, 1; install it or set heavy"
    ):
        packer.find(start("packer_build"))
