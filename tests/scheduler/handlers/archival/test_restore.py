import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from audit import clock, queries
from audit.models import Change, Event, LateResult, Line, Run
from scheduler.handlers.archival import apply_policies, restore, store, write
from scheduler.handlers.archival.exceptions import ArchiveError, NotAnArchive
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.restore import Restored
from scheduler.handlers.notifications.models import Channel, Notification
from tests.scheduler.handlers.archival.conftest import NOW
from workqueue.models import Tenant

type Make = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("root")


def back(file: ArchiveFile, why: str = "asked for") -> Restored:
    return restore.into_table(
        file, who="ada", origin="command", why=why, now=clock.now()
    )


@pytest.fixture
def archived(ctx: Make, policy: Make, event: Make) -> ArchiveFile:
    """A file with the one event there was."""
    policy()
    event()
    apply_policies.run(ctx())
    return ArchiveFile.objects.get()


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
    ctx: Make, root: Path, archived: ArchiveFile
) -> None:
    back(archived)
    assert ArchiveFile.objects.get().restored_at
    assert (root / archived.path).exists()

    apply_policies.run(ctx())

    again = ArchiveFile.objects.get()
    assert (again.path, again.sha256_file) == (archived.path, archived.sha256_file)
    assert not again.restored_at
    assert not Event.objects.exists()


def test_a_restored_file_goes_with_its_rows_where_they_are_deleted(
    ctx: Make, policy: Make, event: Make
) -> None:
    rule = policy()
    event()
    apply_policies.run(ctx())
    back(ArchiveFile.objects.get())
    rule.action = "delete"
    rule.save()

    outcome = apply_policies.run(ctx())

    assert not Event.objects.exists()
    assert not ArchiveFile.objects.exists()
    assert list(store.everything()) == []
    assert outcome.details["events"]["expired_files"] == 1  # type: ignore[index]


def test_restored_files_go_once_another_file_holds_their_rows(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    rows = []
    for _ in range(2):
        rows.append(event().pk)
        apply_policies.run(ctx())
    for file in ArchiveFile.objects.all():
        back(file)

    apply_policies.run(ctx())

    file = ArchiveFile.objects.get()
    assert list(store.everything()) == [file.path]
    found = [json.loads(line)["id"] for line in restore.lines(file.path)]
    assert found == rows


def test_a_restored_file_that_ends_later_than_its_successor_hinders_nothing(
    ctx: Make, policy: Make, event: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    rows = [event().pk for _ in range(3)]
    apply_policies.run(ctx())
    back(ArchiveFile.objects.get())
    monkeypatch.setattr(write, "MAX_ROWS", 2)

    outcome = apply_policies.run(ctx())

    assert outcome.word == "succeeded"
    files = list(ArchiveFile.objects.order_by("id"))
    assert [file.rows for file in files] == [2, 1]
    assert sorted(store.everything()) == sorted(file.path for file in files)
    held = [json.loads(x)["id"] for f in files for x in restore.lines(f.path)]
    assert held == rows


def test_a_restored_file_stays_while_a_row_of_it_is_in_the_table(
    ctx: Make, policy: Make, event: Make
) -> None:
    rule = policy()
    event()
    apply_policies.run(ctx())
    file = ArchiveFile.objects.get()
    back(file)
    rule.keep_days = 3000
    rule.save()

    apply_policies.run(ctx())

    assert list(store.everything()) == [file.path]
    assert ArchiveFile.objects.get().restored_at


def test_a_restored_file_past_its_time_is_removed_and_marked_like_any_other(
    ctx: Make, policy: Make, event: Make
) -> None:
    rule = policy(archive_keep_days=10)
    event()
    apply_policies.run(ctx())
    file = ArchiveFile.objects.get()
    back(file)
    rule.keep_days = 3000
    rule.save()
    ArchiveFile.objects.update(created_at=ctx().now - timedelta(days=12))

    apply_policies.run(ctx())

    assert list(store.everything()) == []
    assert ArchiveFile.objects.get().deleted_at
    # And its rows can be archived under that name again.
    rule.keep_days = 30
    rule.save()
    apply_policies.run(ctx())
    assert list(store.everything()) == [file.path]
    assert not ArchiveFile.objects.get().deleted_at


def test_a_file_is_not_restored_twice_since_another_may_hold_its_rows_by_then(
    archived: ArchiveFile,
) -> None:
    back(archived)
    Event.objects.all().delete()
    archived.refresh_from_db()

    with pytest.raises(ArchiveError, match=r"restored on .* \(0 rows inserted\)"):
        back(archived)

    assert not Event.objects.exists()


def test_a_tenant_with_a_restored_file_is_due(
    acme: Tenant, archived: ArchiveFile
) -> None:
    assert acme.pk not in apply_policies.due(NOW)
    back(archived)
    Event.objects.all().delete()
    assert acme.pk in apply_policies.due(NOW)


def test_a_row_whose_key_another_has_taken_restores_nothing_and_says_so(
    ctx: Make, policy: Make, acme: Tenant
) -> None:
    policy("notifications")
    old = NOW - timedelta(days=65)
    values = {
        "tenant": acme,
        "channel": Channel.objects.create(tenant=acme, name="ops", kind="web"),
        "created_at": old,
    }
    rows = [
        Notification.objects.create(
            **values, dedupe_key=f"n-{n}", state="sent", finished_at=old
        )
        for n in range(2)
    ]
    apply_policies.run(ctx())
    Notification.objects.create(**values, dedupe_key="n-1", next_attempt_at=NOW)

    with pytest.raises(ArchiveError, match=r"another with its key \(0 rows inserted\)"):
        back(ArchiveFile.objects.get())

    assert not Notification.objects.filter(pk__in=[row.pk for row in rows]).exists()
    assert not ArchiveFile.objects.get().restored_at


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


def test_who_restored_what_and_why_is_a_change(archived: ArchiveFile) -> None:
    back(archived, why="the auditors asked")

    change = Change.objects.get()
    assert (change.who, change.verb, change.why) == (
        "ada",
        "restored",
        "the auditors asked",
    )
    assert change.tenant_id == archived.tenant_id
    assert (change.old["path"], change.new) == (
        archived.path,
        {"rows": 1, "inserted": 1},
    )


def test_a_damaged_file_restores_nothing(root: Path, archived: ArchiveFile) -> None:
    path = root / archived.path
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(ArchiveError, match=r"cannot be read .* \(0 rows inserted\)"):
        back(archived)

    assert not Event.objects.exists()
    assert ArchiveFile.objects.exists()


def test_a_file_is_found_by_its_path_or_its_number(
    root: Path, archived: ArchiveFile
) -> None:
    for name in (
        archived.path,
        str(root / archived.path),
        str(archived.pk),
        f"#{archived.pk}",
    ):
        assert restore.registered(name) == archived
    with pytest.raises(NotAnArchive, match="no registered archive file is called nope"):
        restore.registered("nope")
