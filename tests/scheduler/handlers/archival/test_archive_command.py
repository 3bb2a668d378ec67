import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.models import Change, Event
from scheduler.handlers.archival import apply_policies, store
from scheduler.handlers.archival.models import ArchiveFile

type Make = Callable[..., Any]


def archive(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("archive", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def file(ctx: Make, policy: Make, event: Make, root: Path) -> ArchiveFile:
    policy()
    event(data={"e": "Zürich"})
    event()
    apply_policies.run(ctx())
    return ArchiveFile.objects.get()


def test_verify_of_all_says_ok_for_each_file(file: ArchiveFile) -> None:
    out, err = archive("verify")

    assert out == f"ok         {file.path}: 2 rows, as written\n"
    assert err == ""


def test_verify_ends_with_1_when_a_file_is_damaged(
    file: ArchiveFile, root: Path
) -> None:
    (root / file.path).write_bytes(b"")

    with pytest.raises(CommandError, match="1 of 1 files are damaged or missing") as e:
        archive("verify", file.path)

    assert e.value.returncode == 1


def test_verify_ends_with_3_when_there_is_nothing_to_verify(
    db: None, root: Path
) -> None:
    with pytest.raises(CommandError, match="there is no archive file yet") as caught:
        archive("verify")

    assert caught.value.returncode == 3


def test_an_unknown_file_ends_with_3(file: ArchiveFile) -> None:
    for arguments in (["verify", "nope"], ["restore", "nope", "--into-table"]):
        with pytest.raises(CommandError, match="nope") as caught:
            archive(*arguments)
        assert caught.value.returncode == 3


def test_verify_as_json_lists_files_and_those_without_a_row(file: ArchiveFile) -> None:
    store.put("acme/events/2026/09/events-x-y.jsonl.gz", b"")

    out, _ = archive("verify", "--json")

    assert json.loads(out) == {
        "files": [{"path": file.path, "word": "ok", "text": "2 rows, as written"}],
        "unregistered": ["acme/events/2026/09/events-x-y.jsonl.gz"],
    }


def test_restore_prints_the_lines_and_nothing_else(file: ArchiveFile) -> None:
    out, err = archive("restore", file.path, "--print")

    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[0]["data"] == {"e": "Zürich"}
    assert (len(rows), err) == (2, "")
    assert archive("restore", file.path)[0] == out
    assert not Event.objects.exists()


def test_restore_into_the_table_puts_rows_back_and_is_a_change(
    file: ArchiveFile,
) -> None:
    out, _ = archive(
        "restore", str(file.pk), "--into-table", "--why", "audit", "--json"
    )

    assert json.loads(out) == {"path": file.path, "rows": 2, "inserted": 2}
    assert Event.objects.count() == 2
    assert Change.objects.get().why == "audit"


def test_restore_says_that_the_next_run_takes_the_rows_again(file: ArchiveFile) -> None:
    out, _ = archive("restore", file.path, "--into-table")

    assert out.startswith(f"2 of 2 rows of {file.path} are back in the table")
    assert "raise keep_days" in out


def test_a_damaged_file_is_not_restored_and_ends_with_1(
    file: ArchiveFile, root: Path
) -> None:
    (root / file.path).write_bytes(b"no gzip")

    with pytest.raises(CommandError, match="0 rows inserted") as caught:
        archive("restore", file.path, "--into-table")

    assert caught.value.returncode == 1


def test_the_process_itself_ends_with_the_code_and_keeps_stdout_for_data(
    manage: Callable[..., Any],
) -> None:
    done = manage("archive", "verify", "--json")

    assert done.returncode == 3
    assert json.loads(done.stdout) == {"files": [], "unregistered": []}
    assert "there is no archive file yet" in done.stderr
