from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit import clock, queries
from audit.models import Change, Event, LateResult, Line, Run
from scheduler.handlers.archival import apply_policies, restore
from scheduler.handlers.archival.exceptions import ArchiveError, NotAnArchive
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.restore import Restored

type Make = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("root")


def back(file: ArchiveFile, why: str = "asked for") -> Restored:
    return restore.into_table(
        file, who="ada", origin="command", why=why, now=clock.now()
    )


def test_archived_events_come_back_exactly_as_they_were(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy()
    event(data={"e": "Zürich", "n": [1, None, 1.5]}, severity=3)
    event(subject="scan:2")
    before = list(Event.objects.order_by("pk").values())
    apply_policies.run(ctx())

    done = back(ArchiveFile.objects.get())

    assert list(Event.objects.order_by("pk").values()) == before
    assert (done.rows, done.inserted) == (2, 2)


def test_archived_runs_come_back_with_lines_and_late_results(
    ctx: Make, policy: Make, ran: Make
) -> None:
    policy("runs")
    row = ran(lines=3, details={"n": 1}, started_at=None)
    LateResult.objects.create(
        claim_id=row.id,
        arrived_at=row.finished_at,
        tenant_id=row.tenant_id,
        tenant=row.tenant,
        handler=row.handler,
        finished_at=row.finished_at,
        outcome="succeeded",
    )
    tables = (Run, Line, LateResult)
    before = [list(table.objects.order_by("pk").values()) for table in tables]
    apply_policies.run(ctx())
    assert not any(table.objects.exists() for table in tables)

    back(ArchiveFile.objects.get())

    assert [list(t.objects.order_by("pk").values()) for t in tables] == before
    assert queries.run(row.id) is not None


def test_what_was_restored_can_be_archived_again(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    event()
    apply_policies.run(ctx())
    first = ArchiveFile.objects.get()
    back(first)
    assert not ArchiveFile.objects.exists()
    assert (root / first.path).exists()

    apply_policies.run(ctx())

    again = ArchiveFile.objects.get()
    assert (again.path, again.sha256_file) == (first.path, first.sha256_file)
    assert not Event.objects.exists()


def test_rows_that_are_there_stay_as_they_are(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy()
    kept = Event.objects.filter(pk=event(severity=1).pk).values().get()
    event()
    apply_policies.run(ctx())
    Event.objects.create(**{**kept, "severity": 4})

    done = back(ArchiveFile.objects.get())

    assert (done.rows, done.inserted) == (2, 1)
    assert Event.objects.get(pk=kept["id"]).severity == 4


def test_who_restored_what_and_why_is_a_change(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy()
    event()
    apply_policies.run(ctx())
    file = ArchiveFile.objects.get()

    back(file, why="the auditors asked")

    change = Change.objects.get()
    assert (change.who, change.verb, change.why) == (
        "ada",
        "restored",
        "the auditors asked",
    )
    assert change.tenant_id == file.tenant_id
    assert (change.old["path"], change.new) == (file.path, {"rows": 1, "inserted": 1})


def test_a_damaged_file_restores_nothing(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    event()
    apply_policies.run(ctx())
    file = ArchiveFile.objects.get()
    path = root / file.path
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(ArchiveError, match=r"cannot be read .* \(0 rows inserted\)"):
        back(file)

    assert not Event.objects.exists()
    assert ArchiveFile.objects.exists()


def test_a_file_is_found_by_its_path_or_its_number(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    event()
    apply_policies.run(ctx())
    file = ArchiveFile.objects.get()

    for name in (file.path, str(root / file.path), str(file.pk), f"#{file.pk}"):
        assert restore.registered(name) == file
    with pytest.raises(NotAnArchive, match="no registered archive file is called nope"):
        restore.registered("nope")
