"""What stops a command from outside is one line and an exit code of its own."""

import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError

from project import command_line
from tests.processes import MANAGE, run_manage
from workqueue import schema

NOWHERE = "postgresql://nobody@127.0.0.1:1/x"
COMMANDS = (
    ("leader",),
    ("why", "notifications.deliver", "--tenant", "acme"),
    ("checkinvariants",),
    ("createtenant", "acme", "--name", "Acme"),
    ("archive", "verify"),
)

pytestmark = pytest.mark.once


def unreadable(text: str) -> OperationalError:
    """What SQLite makes of a statement that is wrong."""
    problem = OperationalError(text)
    problem.__cause__ = sqlite3.OperationalError(text)
    problem.__cause__.sqlite_errorcode = sqlite3.SQLITE_ERROR
    return problem


@pytest.fixture
def ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """How `manage.py x` ends whose command raises that."""

    def ends(problem: BaseException, *more: str) -> tuple[int, str]:
        def execute(argv: list[str]) -> None:
            raise problem

        monkeypatch.setattr(command_line, "execute_from_command_line", execute)
        with pytest.raises(SystemExit) as end:
            command_line.run(["manage.py", "x", *more])
        return int(end.value.code or 0), capsys.readouterr().err

    return ends


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        (NOWHERE, 69, "the database of DATABASE_URL does not answer: "),
        ("sqlite:///{folder}/empty.sqlite3", 78, "the database is not migrated"),
    ],
)
def test_without_its_database_a_command_ends_with_one_line(
    process_env: dict[str, str],
    tmp_path: Path,
    command: tuple[str, ...],
    url: str,
    code: int,
    said: str,
) -> None:
    env = {**process_env, "DATABASE_URL": url.format(folder=tmp_path)}
    ended = run_manage(command, env=env, timeout=60)
    assert ended.returncode == code
    assert ended.stdout == ""
    [line] = ended.stderr.splitlines()
    assert line.startswith(said)


def test_a_file_that_is_no_database_is_a_wrong_address(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "notes").write_text("milk, eggs\n" * 100)
    env = {**process_env, "DATABASE_URL": f"sqlite:///{tmp_path}/notes"}
    ended = run_manage(["leader"], env=env, timeout=60)
    assert ended.returncode == 78
    [line] = ended.stderr.splitlines()
    assert line.startswith("DATABASE_URL is wrong: ")


def test_who_has_read_enough_ends_a_command_without_a_word(
    process_env: dict[str, str],
) -> None:
    process = subprocess.Popen(
        [*MANAGE, "showconfig", "--json"],
        env=process_env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (141, b"")


@pytest.mark.parametrize(
    "problem", [OperationalError("locked"), InterfaceError("gone")]
)
def test_a_database_that_breaks_off_may_be_tried_again(
    ends: Callable[..., tuple[int, str]], monkeypatch: Any, problem: Exception
) -> None:
    ready = schema.Schema(missing=(), newer=(), partial=())
    monkeypatch.setattr(schema, "look", lambda: ready)
    monkeypatch.setattr(command_line.connection, "close", lambda: None)
    code, said = ends(problem)
    assert code == 69
    assert said == f"the database of DATABASE_URL broke off: {problem}. Try again.\n"


def test_a_schema_that_was_applied_in_part_is_told_as_that(
    ends: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    half = schema.Schema(missing=("a.0002",), newer=(), partial=("a.0002 stuck",))
    monkeypatch.setattr(schema, "look", lambda: half)
    monkeypatch.setattr(command_line.connection, "close", lambda: None)
    code, said = ends(ProgrammingError("no such column"))
    assert code == 78
    assert said.startswith("the schema was applied in part: a.0002 stuck; ")


def test_ctrl_c_ends_a_command_without_a_traceback(
    ends: Callable[..., tuple[int, str]],
) -> None:
    assert ends(KeyboardInterrupt()) == (130, "")


@pytest.mark.parametrize(
    ("problem", "option"),
    [
        (ProgrammingError("our own fault"), ""),
        (OperationalError("gone"), "--traceback"),
        (unreadable("no such column: x"), ""),
        (ValueError("a bug"), ""),
    ],
)
def test_a_fault_of_ours_and_one_whose_traceback_is_wanted_are_raised(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, option: str
) -> None:
    def execute(argv: list[str]) -> None:
        raise problem

    ready = schema.Schema(missing=(), newer=(), partial=())
    monkeypatch.setattr(schema, "look", lambda: ready)
    monkeypatch.setattr(command_line.connection, "close", lambda: None)
    monkeypatch.setattr(command_line, "execute_from_command_line", execute)
    with pytest.raises(type(problem)):
        command_line.run(["manage.py", "x", *([option] if option else [])])
