"""What would stop a process a second later is said before, and names what to set."""

import os
import socket
from pathlib import Path

import pytest
from django.core import checks

from project import preflight
from project.modes import MODES
from project.upgrade import Refused

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def installation(settings, tmp_path):
    settings.SQLITE_FILE = tmp_path / "db.sqlite3"
    settings.BIND, settings.PORT = "127.0.0.1", 0


def test_a_sound_installation_passes():
    preflight.preflight(MODES["all"])


def test_a_taken_port_is_refused_only_where_there_is_a_port(settings):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings.PORT = taken.getsockname()[1]
        with pytest.raises(Refused, match=f"port {settings.PORT} is in use"):
            preflight.preflight(MODES["all"])
        preflight.preflight(MODES["worker"])


def test_an_address_of_another_machine_is_refused(settings):
    settings.BIND = "203.0.113.1"
    with pytest.raises(
        Refused, match=r"BIND '203\.0\.113\.1' is no address of this machine"
    ):
        preflight.preflight(MODES["all"])


def test_a_folder_that_is_not_there_is_refused(settings):
    settings.SQLITE_FILE = Path("/nowhere/db.sqlite3")
    with pytest.raises(
        Refused, match=r"the database /nowhere/db\.sqlite3 cannot be written"
    ):
        preflight.preflight(MODES["worker"])


def test_a_file_where_jobs_would_work_is_refused_only_where_jobs_run(
    settings, tmp_path
):
    (tmp_path / "file").touch()
    settings.JOB_ROOT = tmp_path / "file" / "jobs"
    preflight.preflight(MODES["web"])
    with pytest.raises(Refused, match=r"^JOB_ROOT .*/file is no folder"):
        preflight.preflight(MODES["jobworker"])


def test_modules_that_are_not_there_are_refused_only_where_jobs_run(settings, tmp_path):
    settings.JOB_MODULES = str(tmp_path / "modules")
    preflight.preflight(MODES["web"])
    with pytest.raises(Refused, match=r"^JOB_MODULES .*/modules' is no folder"):
        preflight.preflight(MODES["jobworker"])


def test_what_the_checks_say_is_a_line_of_the_log_each(monkeypatch, caplog):
    warning = checks.Warning("This\n  hurts.", hint="Do that.", id="project.W999")
    monkeypatch.setattr(preflight.checks, "run_checks", lambda: [warning])
    preflight.system_checks()
    assert caplog.messages == ["project.W999: This hurts. Do that."]


def test_a_check_that_finds_an_error_ends_the_start(monkeypatch, caplog):
    error = checks.Error("Broken.", id="project.E999")
    monkeypatch.setattr(preflight.checks, "run_checks", lambda: [error])
    with pytest.raises(Refused, match="the lines above say what to correct"):
        preflight.system_checks()
    assert caplog.messages == ["project.E999: Broken."]


def test_a_folder_of_somebody_else_is_refused(tmp_path):
    """SQLite writes its journal beside the file: a writable file alone is not enough."""
    if os.geteuid() != 0:
        tmp_path.chmod(0o555)
        with pytest.raises(Refused, match="cannot be written"):
            preflight.preflight(MODES["worker"])
        return
    # The superuser may write everywhere, so the question is asked as somebody else.
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            preflight.preflight(MODES["worker"])
        except Refused as refused:
            code = 0 if "Permission denied" in str(refused) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
