"""deploy/systemd: one unit for every mode."""

import shlex
from collections import defaultdict

import pytest

from tests.deploy.files import DEPLOY, drain, wrong_variables

pytestmark = pytest.mark.once


def unit() -> dict[str, list[str]]:
    """All settings, by name."""
    found = defaultdict(list)
    for line in (DEPLOY / "systemd" / "millrace@.service").read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def environment() -> dict[str, str]:
    pairs = [pair for line in unit()["Environment"] for pair in shlex.split(line)]
    return dict(pair.split("=", 1) for pair in pairs)


def of_the_file() -> dict[str, str]:
    text = (DEPLOY / "systemd" / "millrace.env.example").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if line[0] != "#")


def test_variables_are_in_the_registry():
    assert wrong_variables(environment() | of_the_file()) == []
    assert environment()["FALCON_MODE"] == "%i"


def test_every_secret_that_is_read_is_handed_over():
    given = {line.split(":")[0] for line in unit()["LoadCredential"]}
    read = {
        value.removeprefix("%d/")
        for name, value in environment().items()
        if name.endswith("_FILE")
    }
    assert given == read


def test_it_may_drain_before_it_is_killed():
    (stop,) = unit()["TimeoutStopSec"]
    assert float(stop) > drain(environment() | of_the_file()) + 10


def test_the_stop_goes_to_start_alone_which_tells_its_processes():
    assert unit()["KillMode"] == ["mixed"]
    assert unit()["ExecStart"] == ["/opt/millrace/.venv/bin/python manage.py start"]


def test_what_needs_a_person_is_not_started_again():
    assert unit()["RestartPreventExitStatus"] == ["78"]


def test_it_may_write_where_the_archive_and_the_jobs_are_and_nowhere_else():
    assert unit()["ProtectSystem"] == ["strict"]
    (folder,) = unit()["StateDirectory"]
    for name in ("ARCHIVE_ROOT", "JOB_ROOT"):
        assert environment()[name].startswith(f"/var/lib/{folder}/")
