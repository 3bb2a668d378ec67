"""What `start` refuses, in one line and with an exit code that a program can read."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from project.environment import VARIABLES
from tests.processes import MANAGE, ROOT, Process, run_manage

pytestmark = pytest.mark.once

GUNICORN = [
    sys.executable,
    "-m",
    "gunicorn",
    "-c",
    "python:project.gunicorn",
    "project.wsgi:application",
]


@pytest.fixture
def clean(tmp_path) -> dict[str, str]:
    """An environment without any of our variables, but for a database of its own."""
    ours = {v.name for v in VARIABLES}
    kept = {
        k: v
        for k, v in os.environ.items()
        if k not in ours and not k.startswith("MILLRACE")
    }
    return {**kept, "DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}"}


def start(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_manage(["start", *arguments], env=env, timeout=60)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "DATABASE_URL",
            "postgres",
            "DATABASE_URL is no address of a database; write postgresql://",
        ),
        ("SERVER_TIME_ZONE", "Mars", "SERVER_TIME_ZONE 'Mars' is no time zone"),
        ("FALCON_MODE", "al", "FALCON_MODE 'al' must be one of all, api, web, worker"),
        (
            "DJANGO_ENV",
            "production",
            "SECRET_KEY is not set; DJANGO_ENV=production needs it",
        ),
        ("BIND", "203.0.113.1", "BIND '203.0.113.1' is no address of this machine"),
        (
            "DATABASE_URL",
            "sqlite:////nowhere/db.sqlite3",
            "the database /nowhere/db.sqlite3 cannot be written",
        ),
        (
            "ARCHIVE_ROOT",
            "/dev/null/archive",
            "ARCHIVE_ROOT '/dev/null/archive' cannot be made: /dev/null is no folder",
        ),
        ("EMAIL_FROM", "a\nb@c.de", "EMAIL_FROM 'a\\nb@c.de' must be one line"),
        ("METRICS_TOKEN", "a\rb", "METRICS_TOKEN must be one line"),
    ],
)
def test_what_start_refuses_showconfig_says_too_in_one_line_and_78(
    clean, name, value, sentence
):
    for command in ("start", "showconfig"):
        result = run_manage([command], env={**clean, name: value}, timeout=60)
        assert result.returncode == 78, result.stderr
        (line,) = result.stderr.strip().splitlines()
        assert line.startswith(f"millrace: {sentence}")


def test_showconfig_is_content_while_the_port_is_in_use(clean):
    """It may be our own, of the very installation that is asked about."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        env = {**clean, "PORT": str(taken.getsockname()[1])}
        assert run_manage(["showconfig"], env=env, timeout=60).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_before_anything_runs_it_leaves_nothing_behind(
    clean, tmp_path, number
):
    folder = tmp_path / "tmp"
    folder.mkdir()
    away = "postgresql://a:b@127.0.0.1:1/none"
    env = {**clean, "DATABASE_URL": away, "TMPDIR": str(folder), "PORT": "18999"}
    process = Process(["start"], env=env, log=tmp_path / "log")
    try:
        process.says("waiting for the database", within=60)
        process.send(number)
        assert process.wait(within=10) == 128 + number
    finally:
        process.end()
    assert "Traceback" not in process.log
    assert list(folder.iterdir()) == []


def test_it_is_the_same_for_every_command_and_for_the_web_process(clean):
    env = {**clean, "PORT": "no"}
    commands = [[*MANAGE, "check"], [*MANAGE, "runworker"], GUNICORN]
    for command in commands:
        result = subprocess.run(
            command,
            env=env,
            cwd=ROOT,
            timeout=60,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode, result.stderr) == (
            78,
            "millrace: PORT 'no' must be a whole number\n",
        )


def test_a_taken_port_is_named(clean):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = start({**clean, "PORT": port})
    assert result.returncode == 78
    assert (
        result.stderr.strip()
        == f"millrace: port {port} is in use; stop what listens there, or set PORT to another"
    )


def test_a_folder_that_is_not_there_is_named(clean):
    result = start(
        {**clean, "DATABASE_URL": "sqlite:////nowhere/db.sqlite3", "PORT": "18999"}
    )
    assert result.returncode == 78
    assert (
        "the database /nowhere/db.sqlite3 cannot be written (No such file or directory)"
        in result.stderr
    )
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_database_that_does_not_answer_is_waited_for_and_then_69(clean):
    env = {
        **clean,
        "DATABASE_URL": "postgresql://a:secret@127.0.0.1:1/b",
        "DATABASE_WAIT_S": "1",
        "PORT": "18998",
    }
    result = start(env)
    assert result.returncode == 69
    assert (
        "millrace: the database of DATABASE_URL did not answer for 1 s" in result.stderr
    )
    assert "waiting for the database" in result.stderr
    assert "secret" not in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            "INSERT INTO django_migrations (app, name, applied) VALUES ('audit', '9999_next', '2026-01-01')",
            "the database was migrated by a newer release (audit.9999_next is unknown here)",
        ),
        (
            "DELETE FROM django_migrations WHERE name = '0004_tally'",
            "the schema was applied in part: audit.0004_tally is not recorded as applied, yet its table audit_tally exists",
        ),
    ],
    ids=["newer", "in part"],
)
def test_a_schema_that_is_not_this_releases_is_refused_with_the_way_out(
    clean, tmp_path, spoil, sentence
):
    assert run_manage(["migrate", "-v0"], env=clean, timeout=120).returncode == 0
    with closing(sqlite3.connect(tmp_path / "db.sqlite3")) as database:
        database.execute(spoil)
        database.commit()
    result = start({**clean, "PORT": "18996", "FALCON_MODE": "api"})
    assert result.returncode == 78
    assert f"millrace: {sentence}" in result.stderr
    assert "To recover: " in result.stderr
    assert result.stderr.rstrip().endswith("Nothing was changed now.")


def test_the_demo_is_not_for_production(clean):
    env = {**clean, "DJANGO_ENV": "production", "SECRET_KEY": "x" * 60, "PORT": "18997"}
    result = start(env, "--demo")
    assert result.returncode == 78
    assert "not with DJANGO_ENV=production" in result.stderr


def test_an_old_python_is_told_what_is_needed(tmp_path):
    """manage.py is read by whatever Python there is; so it has to be readable by it."""
    program = (ROOT / "manage.py").read_text().replace("(3, 13)", "(3, 99)")
    (tmp_path / "manage.py").write_text(program)
    result = subprocess.run(
        [sys.executable, tmp_path / "manage.py", "start"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert result.returncode == 78
    assert result.stderr.startswith(
        "millrace: Python 3.13 or newer is needed, this is 3."
    )
    assert len(result.stderr.splitlines()) == 1
