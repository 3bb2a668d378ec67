import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from audit.models import Event, LateResult, Line, Run
from scheduler.handlers.archival import apply_policies, read, write
from scheduler.handlers.archival.models import ArchiveFile
from tests import factories
from tests.scheduler.handlers.archival.reading import files, rows_of
from workqueue.models import Tenant

type Make = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("root")


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
