import errno
import gzip
import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from audit.models import Event, LateResult, Line, Run
from scheduler.handlers.archival import apply_policies, commit, read, store, write
from scheduler.handlers.archival.models import ArchiveFile
from tests import factories
from workqueue.models import Tenant

type Make = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("root")


def files(root: Path) -> list[str]:
    return sorted(
        p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


# --- what a run does


def test_old_rows_leave_the_table_for_a_file_and_young_ones_stay(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    old = [event(days=65), event(days=64.5)]
    young = event(days=3)

    outcome = apply_policies.run(ctx())

    [file] = ArchiveFile.objects.all()
    assert file.path == f"acme/events/2026/09/events-{old[0].pk}-{old[1].pk}.jsonl.gz"
    assert [row["id"] for row in rows_of(root / file.path)] == [row.pk for row in old]
    assert list(Event.objects.values_list("pk", flat=True)) == [young.pk]
    assert (file.rows, file.first_id, file.last_id) == (
        2,
        str(old[0].pk),
        str(old[1].pk),
    )
    assert file.bytes == (root / file.path).stat().st_size
    assert (outcome.word, outcome.seen, outcome.changed) == ("succeeded", 2, 2)
    assert outcome.again_in is None
    assert outcome.summary == "2 events archived"


def test_the_same_rows_make_the_same_bytes_without_time_or_name(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    kept = (
        Event.objects.filter(pk=event(data={"e": "Zürich", "a": 1}).pk).values().get()
    )
    apply_policies.run(ctx())
    [name] = files(root)
    first = (root / name).read_bytes()
    ArchiveFile.objects.all().delete()
    Event.objects.create(**kept)

    apply_policies.run(ctx())

    assert (root / name).read_bytes() == first
    assert (
        first[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    )  # no flags, mtime 0
    assert b'"data":{"a":1,"e":"Z\xc3\xbcrich"}' in gzip.decompress(first)


def test_files_are_for_the_owner_alone(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    event()

    apply_policies.run(ctx())

    [name] = files(root)
    assert (root / name).stat().st_mode & 0o777 == 0o600


def test_a_run_takes_its_lines_and_late_results_along(
    ctx: Make, policy: Make, ran: Make, root: Path
) -> None:
    policy("runs")
    row = ran(lines=3)
    LateResult.objects.create(
        claim_id=row.id,
        arrived_at=row.finished_at,
        tenant_id=row.tenant_id,
        tenant=row.tenant,
        handler=row.handler,
        finished_at=row.finished_at,
        outcome="succeeded",
    )
    stays = ran(days=1, lines=2)

    apply_policies.run(ctx())

    [file] = ArchiveFile.objects.all()
    [record] = rows_of(root / file.path)
    assert record["id"] == str(row.id)
    assert [line[0] for line in record["lines"]] == [1, 2, 3]
    assert record["lines"][0][2:] == [20, "line 1"]
    assert record["late"][0]["outcome"] == "succeeded"
    assert list(Run.objects.values_list("id", flat=True)) == [stays.id]
    assert set(Line.objects.values_list("claim_id", flat=True)) == {stays.id}
    assert not LateResult.objects.exists()


def test_runs_are_ordered_and_named_by_their_finish(
    ctx: Make, policy: Make, ran: Make, root: Path
) -> None:
    policy("runs")
    later = ran(days=50)  # made first, so an order by insertion would put it first
    sooner = ran(days=51)

    apply_policies.run(ctx())

    assert files(root) == [f"acme/runs/2026/10/runs-{sooner.id}-{later.id}.jsonl.gz"]


def test_a_file_holds_one_month_and_no_more_rows_than_allowed(
    ctx: Make, policy: Make, event: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MAX_ROWS", 3)
    policy()
    for days in (95, 94, 62, 61.9, 61.8, 61.7):
        event(days=days)

    apply_policies.run(ctx())

    found = ArchiveFile.objects.order_by("min_at").values_list("rows", "path")
    assert [rows for rows, _ in found] == [2, 3, 1]
    assert [path[12:19] for _, path in found] == ["2026/08", "2026/09", "2026/09"]


def test_a_file_is_ended_before_it_holds_too_many_bytes(
    ctx: Make, policy: Make, event: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MAX_RAW", 1_800)
    policy()
    for _ in range(3):
        event(data={"text": "x" * 600})

    apply_policies.run(ctx())

    assert [file.rows for file in ArchiveFile.objects.order_by("id")] == [2, 1]


def test_another_tenants_rows_are_never_touched(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy(tenant=None)
    other = factories.tenant("other")
    theirs = event(tenant_id=other.pk, tenant="other")
    event()

    apply_policies.run(ctx())

    assert list(Event.objects.values_list("pk", flat=True)) == [theirs.pk]
    assert set(ArchiveFile.objects.values_list("tenant", flat=True)) == {"acme"}


def test_a_policy_to_delete_leaves_no_file(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy(action="delete")
    event()
    young = event(days=1)

    outcome = apply_policies.run(ctx())

    assert list(Event.objects.all()) == [young]
    assert files(root) == []
    assert outcome.summary == "1 events deleted"


def test_with_nothing_past_its_policy_a_run_says_so_and_found_nothing(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy()
    event(days=1)

    outcome = apply_policies.run(ctx())

    assert outcome.summary == "nothing is past its policy"
    assert (outcome.seen, outcome.changed) == (0, 0)


# --- bad rows


def unreadable(row: Event) -> None:
    """Put a value into the row that no JSON of ours can hold, in the database's own way."""
    with connection.cursor() as cursor:
        value = '{"n": 1' + "0" * 400 + ".5}"  # beyond a float on both databases
        cursor.execute(
            "UPDATE audit_event SET data = %s WHERE id = %s", [value, row.pk]
        )


def test_a_bad_row_stays_with_its_error_beside_the_file_and_the_others_go(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    good = [event(), event(), event()]
    unreadable(good[1])

    outcome = apply_policies.run(ctx())

    bad = f"acme/events/2026/09/events-{good[1].pk}-{good[1].pk}-bad.jsonl"
    assert bad in files(root)
    [line] = (root / bad).read_text().splitlines()
    assert json.loads(line)["id"] == str(good[1].pk)
    assert "ValueError" in json.loads(line)["error"]
    assert list(Event.objects.values_list("pk", flat=True)) == [good[1].pk]
    assert (outcome.word, outcome.changed, outcome.failed) == ("partial", 2, 1)


@pytest.mark.sqlite
def test_a_row_that_cannot_even_be_read_does_not_stop_the_others(
    ctx: Make, policy: Make, ran: Make
) -> None:
    policy("runs")
    rows = [ran(days=65 - n) for n in range(3)]
    with connection.cursor() as cursor:  # PostgreSQL would not take it
        cursor.execute(
            "UPDATE audit_run SET started_at = '2026-13-45 00:00:00' WHERE id = %s",
            [rows[1].id.hex],
        )

    outcome = apply_policies.run(ctx())

    assert list(Run.objects.values_list("pk", flat=True)) == [rows[1].pk]
    assert (outcome.word, outcome.seen, outcome.failed) == ("partial", 3, 1)


def test_the_same_bad_row_next_night_overwrites_its_note(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    unreadable(event())
    apply_policies.run(ctx())
    event()

    apply_policies.run(ctx())

    assert len([name for name in files(root) if name.endswith("-bad.jsonl")]) == 1
    assert ArchiveFile.objects.count() == 1


def test_too_many_bad_rows_are_one_error_not_a_list_without_end(
    ctx: Make, policy: Make, event: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MAX_BAD", 2)
    policy()
    for _ in range(3):
        unreadable(event())

    outcome = apply_policies.run(ctx())

    assert Event.objects.count() == 3
    assert outcome.word == "failed"
    assert "cannot be written" in outcome.details["events"]["error"]  # type: ignore[index]


# --- a full disk, and deaths at each step


class Died(BaseException):
    """The process is gone: nothing after this line was executed."""


def test_a_full_disk_deletes_nothing_and_leaves_no_tmp(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event(data={"text": os.urandom(200_000).hex()})
    # The kernel's own answer to every write: no space left on device.
    monkeypatch.setattr(
        store, "_open_new", lambda path: os.open("/dev/full", os.O_WRONLY)
    )

    outcome = apply_policies.run(ctx())

    assert outcome.word == "failed"
    assert outcome.error.startswith(
        "archive: no space left on device while writing acme/events/2026/09/events-"
    )
    assert outcome.error.endswith("(0 rows deleted)")
    assert Event.objects.count() == 1
    assert files(root) == []
    assert not ArchiveFile.objects.exists()


def test_a_disk_that_is_full_at_the_end_of_the_file_leaves_no_tmp(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.os, "fsync", full)

    outcome = apply_policies.run(ctx())

    assert outcome.error.startswith("archive: no space left on device while writing")
    assert (Event.objects.count(), files(root)) == (1, [])


def test_a_full_disk_for_one_type_does_not_stop_the_next(
    ctx: Make, policy: Make, event: Make, ran: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy("runs")
    policy("events", action="delete")
    ran()
    event()
    monkeypatch.setattr(
        store, "_open_new", lambda path: os.open("/dev/full", os.O_WRONLY)
    )

    outcome = apply_policies.run(ctx())

    assert (Run.objects.count(), Event.objects.count()) == (1, 0)
    assert outcome.word == "partial"


@pytest.mark.parametrize(
    "step",
    [
        "while the file is written",
        "before the file has its name",
        "when the file has its name",
        "inside the transaction",
    ],
)
def test_a_death_at_any_step_loses_nothing_and_the_next_run_ends_the_work(
    step: str,
    ctx: Make,
    policy: Make,
    event: Make,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy()
    rows = [event(), event()]

    def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        if step == "while the file is written":
            patch.setattr(write._Draft, "finish", die)
            patch.setattr(store, "discard", lambda file, tmp: file.close())
        elif step == "before the file has its name":
            patch.setattr(store.os, "fsync", die)
            patch.setattr(store, "discard", lambda file, tmp: file.close())
        elif step == "when the file has its name":
            patch.setattr(write, "measure", die)
        else:
            patch.setattr(Event.objects.all().__class__, "delete", die)
        with pytest.raises(Died):
            apply_policies.run(ctx())
    assert Event.objects.count() == 2
    assert not ArchiveFile.objects.exists()

    apply_policies.run(ctx())

    name = f"acme/events/2026/09/events-{rows[0].pk}-{rows[1].pk}.jsonl.gz"
    assert files(root) == [name]
    assert [row["id"] for row in rows_of(root / name)] == [row.pk for row in rows]
    assert ArchiveFile.objects.get().path == name
    assert not Event.objects.exists()


def test_a_file_that_reads_back_differently_deletes_nothing(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event()
    publish = store.publish

    def flip(*args: Any, name: str, **values: Any) -> None:
        publish(*args, name=name, **values)
        (root / name).write_bytes(gzip.compress(b'{"id":0}\n'))

    monkeypatch.setattr(store, "publish", flip)

    outcome = apply_policies.run(ctx())

    assert "read back and is not what was written (0 rows deleted)" in outcome.error
    assert (Event.objects.count(), files(root)) == (1, [])


def test_what_an_earlier_attempt_left_is_removed_once_a_longer_file_holds_it(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event(days=65)

    def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(apply_policies, "commit", die)
        with pytest.raises(Died):
            apply_policies.run(ctx())
    left = files(root)
    event(days=64.9)

    apply_policies.run(ctx())

    assert len(left) == 1
    assert files(root) == [ArchiveFile.objects.get().path]
    assert files(root) != left


def test_a_row_that_changed_meanwhile_keeps_all_of_its_file_in_the_table(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event()
    moved = event()
    register = commit._register

    def move(*args: Any) -> None:
        register(*args)
        Event.objects.filter(pk=moved.pk).update(occurred_at=ctx().now)

    monkeypatch.setattr(commit, "_register", move)

    outcome = apply_policies.run(ctx())

    assert "changed while it was written" in outcome.error
    assert Event.objects.count() == 2
    assert (files(root), ArchiveFile.objects.count()) == ([], 0)


def test_a_registered_file_is_never_written_over(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    kept = Event.objects.filter(pk=event().pk).values().get()
    apply_policies.run(ctx())
    before = {name: (root / name).read_bytes() for name in files(root)}
    Event.objects.create(**kept)  # by SQL, not by restore

    outcome = apply_policies.run(ctx())

    assert "is in the table although" in outcome.error
    assert {name: (root / name).read_bytes() for name in files(root)} == before
    assert Event.objects.count() == 1


# --- time


def test_a_run_whose_time_is_over_ends_its_file_and_asks_for_the_rest(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy()
    for _ in range(3):
        event()
    looks = iter([False, False, False, True])

    first = apply_policies.run(ctx(stopping=lambda: next(looks, True)))

    assert first.again_in == timedelta()
    assert 0 < Event.objects.count() < 3

    second = apply_policies.run(ctx())

    assert (second.again_in, Event.objects.count()) == (None, 0)
    assert sum(file.rows for file in ArchiveFile.objects.all()) == 3


def test_the_time_of_one_run_is_archive_max_seconds(
    ctx: Make, policy: Make, event: Make, settings: Any
) -> None:
    settings.ARCHIVE_MAX_SECONDS = 0
    policy()
    event()

    outcome = apply_policies.run(ctx())

    assert (outcome.again_in, Event.objects.count()) == (timedelta(), 1)


# --- due


def due(now: Any) -> set[int]:
    return set(apply_policies.due(now))


def test_due_are_tenants_with_rows_past_their_own_policy_or_the_default(
    ctx: Make, acme: Tenant, policy: Make, event: Make
) -> None:
    policy(tenant=None, keep_days=90)
    policy(keep_days=30)
    other, third = factories.tenant("other"), factories.tenant("third")
    event(days=60)  # past acme's own
    event(days=60, tenant_id=other.pk, tenant="other")  # within the default
    event(days=91, tenant_id=third.pk, tenant="third")  # past the default

    found = due(ctx().now)

    assert found == {acme.pk, third.pk, factories.platform().pk}


def test_a_disabled_policy_makes_nobody_due(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy(is_enabled=False)
    policy(tenant=None, keep_days=10)
    event()

    assert due(ctx().now) == {factories.platform().pk}


def test_a_file_past_its_time_makes_its_tenant_due(
    ctx: Make, acme: Tenant, policy: Make, event: Make
) -> None:
    policy(archive_keep_days=10)
    event()
    apply_policies.run(ctx())
    now = ctx().now

    ArchiveFile.objects.update(created_at=now - timedelta(days=9))
    assert acme.pk not in due(now)
    ArchiveFile.objects.update(created_at=now - timedelta(days=12))
    assert acme.pk in due(now)


def test_what_is_due_needs_no_query_per_tenant(
    ctx: Make, policy: Make, django_assert_num_queries: Any
) -> None:
    policy()
    policy("runs", tenant=None)
    for number in range(5):
        factories.tenant(f"more-{number}")

    with django_assert_num_queries(3):
        due(ctx().now)
