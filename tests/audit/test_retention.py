from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import clock, partitions, retention
from audit.models import Event, LateResult, Line, NodeEvent, Run
from audit.retention import EVENTS, RUNS, Place
from tests import factories
from workqueue.models import Tenant

NOW = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)
BEFORE = NOW - timedelta(days=30)

pytestmark = pytest.mark.django_db


def event(days: float = 60, **values: Any) -> Event:
    fields = {
        "tenant_id": 7,
        "tenant": "acme",
        "type": "a.b",
        "subject": "a:1",
        "occurred_at": NOW - timedelta(days=days),
    }
    return Event.objects.create(**{**fields, **values})


def ran(days: float = 60, lines: int = 0, **values: Any) -> Run:
    at = NOW - timedelta(days=days)
    fields = {
        "id": clock.uuid7(at),
        "tenant_id": 7,
        "tenant": "acme",
        "handler": "a.b",
        "trigger": "slot",
        "enqueued_at": at,
        "finished_at": at,
        "outcome": "succeeded",
        "finish_id": clock.uuid7(at),
    }
    for table in partitions.PARENTS:
        partitions.make_room(table, [at])
    row = Run.objects.create(**{**fields, **values})
    Line.objects.bulk_create(
        Line(claim_id=row.id, seq=n, at=at, level=20, text=f"line {n}")
        for n in range(1, lines + 1)
    )
    return row


def copied(row: Run, *, at: datetime) -> Run:
    """The same, of another moment."""
    values = {field.attname: getattr(row, field.attname) for field in Run._meta.fields}
    return Run(**{**values, "id": clock.uuid7(at), "finished_at": at})


def old(limit: int = 100, after: Place | None = None) -> list[Place]:
    return EVENTS.places(tenant_id=7, before=BEFORE, after=after, limit=limit)


def test_places_are_the_oldest_rows_of_one_tenant_before_a_moment() -> None:
    second = event(days=50)
    first = event(days=60)
    event(days=30)  # exactly at the cutoff: stays
    event(days=60, tenant_id=8)

    assert [place.id for place in old()] == [first.pk, second.pk]


def test_places_go_on_behind_a_row_also_among_equal_times() -> None:
    ids = [event().pk for _ in range(5)]

    first = old(limit=2)
    rest = old(after=first[-1])

    assert [place.id for place in first + rest] == ids


def test_records_come_in_the_order_asked_and_without_those_that_are_gone() -> None:
    a, b, c = event(), event(), event()
    wanted = [Place(at=row.occurred_at, id=row.pk) for row in (c, a, b)]
    b.delete()

    assert [record["id"] for record in EVENTS.records(wanted)] == [c.pk, a.pk]


def test_a_row_that_is_young_again_is_not_deleted() -> None:
    stale, moved = event(), event()
    wanted = old()
    Event.objects.filter(pk=moved.pk).update(occurred_at=NOW)

    assert EVENTS.delete(places=wanted, before=BEFORE) == 1
    assert list(Event.objects.values_list("pk", flat=True)) == [moved.pk]
    assert stale.pk != moved.pk


def test_deleting_more_rows_than_one_statement_takes() -> None:
    Event.objects.bulk_create(
        Event(
            tenant_id=7,
            tenant="acme",
            type="a",
            subject="a",
            occurred_at=NOW - timedelta(days=60, seconds=n),
        )
        for n in range(retention.CHUNK * 2 + 1)
    )

    assert EVENTS.delete(places=old(limit=5000), before=BEFORE) == 1001
    assert not Event.objects.exists()


def test_runs_are_deleted_with_lines_and_late_results_and_nothing_else() -> None:
    row, other = ran(lines=3), ran(days=1, lines=2)
    for claim in (row.id, other.id):
        LateResult.objects.create(
            claim_id=claim,
            arrived_at=NOW,
            tenant_id=7,
            tenant="acme",
            handler="a.b",
            finished_at=NOW,
            outcome="failed",
        )
    places = RUNS.places(tenant_id=7, before=BEFORE, after=None, limit=10)

    assert RUNS.delete(places=places, before=BEFORE) == 1

    assert Run.objects.get().id == other.id
    assert set(Line.objects.values_list("claim_id", flat=True)) == {other.id}
    assert LateResult.objects.get().claim_id == other.id


def test_transcripts_of_many_runs_are_read_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(retention, "LINES_AT_ONCE", 5)
    rows = [ran(days=60 - n, lines=lines) for n, lines in enumerate((3, 3, 0, 2, 9))]
    places = RUNS.places(tenant_id=7, before=BEFORE, after=None, limit=10)

    # How many lines each has; the rows; then three groups: [3], [3, 0, 2], [9].
    with django_assert_num_queries(2 + 3 * 2):
        records = list(RUNS.records(places))

    assert [record["id"] for record in records] == [row.id for row in rows]
    assert [len(record["lines"]) for record in records] == [3, 3, 0, 2, 9]


def test_lines_of_a_run_that_says_it_has_none_are_found_too() -> None:
    row = ran(lines=2, line_count=0)  # its process died; a follower had flushed them

    [record] = RUNS.records([Place(at=row.finished_at, id=row.id)])

    assert len(record["lines"]) == 2


def test_rows_put_back_are_equal_and_those_there_are_not_touched() -> None:
    row = event(data={"n": 1})
    record = next(iter(EVENTS.records(old())))
    Event.objects.filter(pk=row.pk).update(severity=4)

    assert EVENTS.insert([record]) == 0
    assert Event.objects.get().severity == 4
    Event.objects.all().delete()
    assert EVENTS.insert([record]) == 1
    assert Event.objects.values().get() == record


def test_overdue_is_a_condition_on_tenants() -> None:
    late, fine = factories.tenant(), factories.tenant()
    event(tenant_id=late.pk)
    event(tenant_id=fine.pk, days=3)

    found = Tenant.objects.filter(EVENTS.overdue(before=BEFORE))

    assert list(found) == [late]


def test_strays_are_tenants_that_nobody_knows_any_more() -> None:
    known = factories.tenant("known")
    event(tenant_id=known.pk, tenant="known")
    event(tenant_id=known.pk + 1000, tenant="gone")
    event(tenant_id=known.pk + 2000, tenant="young", days=3)

    found = EVENTS.strays(known=Tenant.objects.values("pk"), before=BEFORE, limit=10)

    assert found == {known.pk + 1000: "gone"}


def empties(*, limit: int) -> list[tuple[int, datetime | None]]:
    """Walk the old runs of a.b: what each step deleted, and how far it looked."""
    steps: list[tuple[int, datetime | None]] = []
    while not steps or steps[-1][1] is not None:
        after = steps[-1][1] if steps else None
        steps.append(
            retention.delete_empty(
                handler="a.b", before=BEFORE, after=after, limit=limit
            )
        )
    return steps


def test_only_runs_that_found_nothing_are_empty() -> None:
    ran(handler="a.b")
    kept = [
        ran(handler="a.b", days=1),
        ran(handler="a.c"),
        ran(handler="a.b", outcome="failed"),
        ran(handler="a.b", kind="job"),
        *(ran(handler="a.b", **{name: 1}) for name in ("seen", "changed", "skipped")),
    ]

    assert empties(limit=100) == [(1, None)]
    assert set(Run.objects.values_list("id", flat=True)) == {row.id for row in kept}


def test_deletions_go_no_further_than_their_limit() -> None:
    for days in (60, 50, 40):
        ran(days=days)
        NodeEvent.objects.create(
            node_id=clock.uuid7(),
            node=str(days),
            kind="worker",
            type="note",
            at=NOW - timedelta(days=days),
        )

    assert [found for found, _ in empties(limit=2)] == [2, 1]
    assert retention.delete_node_events(before=BEFORE, limit=2) == 2
    assert NodeEvent.objects.get().node == "40"


def test_runs_that_are_kept_are_looked_at_once_and_never_more_than_the_limit_at_a_time() -> (
    None
):
    kept = [ran(days=100 - n, seen=1).id for n in range(7)]
    same = [ran(days=50) for _ in range(3)]  # of one moment, across a limit
    assert [found for found, _ in empties(limit=2)] == [0, 0, 0, 3, 0]
    assert set(Run.objects.values_list("id", flat=True)) == set(kept)
    assert len(same) == 3


def rows_read(node: dict[str, Any]) -> int:
    """How many rows the scans of a plan looked at."""
    below = node.get("Plans", [])
    if below:
        return sum(rows_read(each) for each in below)
    seen = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return int(seen * node["Actual Loops"])


@pytest.mark.postgresql
def test_no_step_reads_more_of_the_runs_that_are_kept_than_its_limit() -> None:
    first = ran(days=60, seen=1)
    Run.objects.bulk_create(
        copied(first, at=first.finished_at + n * timedelta(seconds=1))
        for n in range(1, 3_000)
    )
    with CaptureQueriesContext(connection) as asked:
        assert sum(found for found, _ in empties(limit=500)) == 0
    for query in asked.captured_queries:
        with connection.cursor() as cursor:
            # So few rows would be read whole.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query['sql']}")
            (plan,) = cursor.fetchone()[0]
        assert rows_read(plan["Plan"]) <= 500, query["sql"]


@pytest.mark.postgresql
def test_a_look_at_runs_by_id_opens_only_the_months_concerned() -> None:
    row = ran(days=60)
    ran(days=1)
    wanted = RUNS._at([Place(at=row.finished_at, id=row.id)])

    plan = wanted.explain()

    assert "audit_run_2026_09" in plan
    assert "audit_run_2026_11" not in plan


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_month_that_was_dropped_is_made_again_for_rows_put_back() -> None:
    row = ran(days=400, lines=2)
    place = Place(at=row.finished_at, id=row.id)
    records = list(RUNS.records([place]))
    RUNS.delete(places=[place], before=BEFORE)
    assert retention.drop_partitions(now=NOW) >= 2

    assert RUNS.insert(records) == 1

    assert list(RUNS.records([place])) == records
    assert connection.vendor == "postgresql"
