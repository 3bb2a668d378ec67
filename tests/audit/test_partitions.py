import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction

from audit import clock, ledger, partitions, transcript
from audit.models import Line, Run
from audit.transcript import LineRow
from tests.audit.conftest import plan, recorded, run_record
from tests.waiting import wait_until

postgresql = pytest.mark.postgresql
committed = pytest.mark.django_db(transaction=True)

# Far from the months that the migration made.
PAST = datetime(2019, 2, 28, 23, 59, 59, 999999, tzinfo=UTC)


def names(parent: str = "audit_run") -> list[str]:
    return [partition.name for partition in partitions.existing(parent)]


@pytest.fixture
def past(transactional_db: None) -> Iterator[None]:
    """Partitions of long ago that a test makes are gone after it."""
    partitions.forget()
    yield
    if connection.vendor == "postgresql":
        Run.objects.all().delete()
        Line.objects.all().delete()
        partitions.drop_empty(datetime(2021, 1, 1, tzinfo=UTC))
        assert not [name for name in names() if name < "audit_run_2021"]


@pytest.fixture
def other(transactional_db: None) -> Iterator[Any]:
    """A second session on the same database, in a transaction of its own."""
    wrapper = connection.copy()
    wrapper.connect()
    wrapper.set_autocommit(False)
    yield wrapper.cursor()
    wrapper.rollback()
    wrapper.close()


# --- months


@pytest.mark.once
def test_months_are_those_of_utc():
    low = partitions.month(datetime.fromisoformat("2026-03-01T00:30:00+02:00"))
    assert low == datetime(2026, 2, 1, tzinfo=UTC)
    assert partitions.name_of("audit_run", low) == "audit_run_2026_02"
    lows = [datetime(2026, 11, 1, tzinfo=UTC)]
    for _ in range(3):
        lows.append(partitions.following(lows[-1]))
    assert [f"{low:%Y-%m-%d}" for low in lows] == [
        "2026-11-01",
        "2026-12-01",
        "2027-01-01",
        "2027-02-01",
    ]


@pytest.mark.sqlite
@pytest.mark.django_db
def test_sqlite_has_plain_tables_and_nothing_to_do(django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        assert partitions.ensure(clock.now()) == []
        assert partitions.drop_empty(clock.now()) == []
        assert partitions.existing("audit_run") == []
        partitions.make_room("audit_run", [PAST])


@postgresql
@pytest.mark.django_db
def test_the_migration_made_this_month_and_the_next_three():
    low = partitions.month(clock.now())
    for parent in partitions.PARENTS:
        lows = {partition.low for partition in partitions.existing(parent)}
        wanted = low
        for _ in range(4):
            assert wanted in lows
            wanted = partitions.following(wanted)


@postgresql
@pytest.mark.django_db
def test_the_database_key_is_wider_than_djangos_and_there_is_no_default_partition():
    with connection.cursor() as cursor:
        keys = {
            parent: connection.introspection.get_primary_key_columns(cursor, parent)
            for parent in partitions.PARENTS
        }
        cursor.execute("SELECT count(*) FROM pg_partitioned_table WHERE partdefid <> 0")
        assert cursor.fetchone() == (0,)
    assert keys == {
        "audit_run": ["id", "finished_at"],
        "audit_line": ["claim_id", "seq", "at"],
    }
    assert Run._meta.pk.name == "id"


@postgresql
def test_indexes_of_the_parent_are_those_of_every_month(past: None):
    recorded(finished_at=PAST)
    with connection.cursor() as cursor:
        of_parent, of_month = (
            {
                (tuple(c["columns"]), c["primary_key"])
                for c in connection.introspection.get_constraints(
                    cursor, table
                ).values()
                if c["index"] or c["primary_key"]
            }
            for table in ("audit_run", "audit_run_2019_02")
        )
    assert of_parent == of_month
    assert len(of_parent) == 7


# --- made by who needs them


@postgresql
def test_ensure_makes_what_is_missing_and_says_what(past: None):
    assert partitions.ensure(PAST) == [
        f"audit_{table}_2019_{month}"
        for table in ("run", "line")
        for month in ("02", "03", "04", "05")
    ]
    assert partitions.ensure(PAST) == []


def test_a_run_of_a_month_without_partition_is_stored(past: None):
    records = [run_record(finished_at=PAST), run_record(finished_at=PAST + timedelta(microseconds=1))]  # fmt: skip
    ledger.record(records, finish_id=uuid4())
    assert Run.objects.count() == 2
    if connection.vendor == "postgresql":
        assert {"audit_run_2019_02", "audit_run_2019_03"} <= set(names())


def test_lines_of_a_month_without_partition_are_stored(past: None):
    transcript.store([LineRow(uuid4(), 1, PAST, 20, "x")])
    assert Line.objects.get().at == PAST


def test_a_month_is_made_inside_the_callers_transaction_and_survives_its_rollback(
    past: None,
):
    with transaction.atomic():
        ledger.record([run_record(finished_at=PAST)], finish_id=uuid4())
        assert Run.objects.count() == 1
        transaction.set_rollback(True)
    assert Run.objects.count() == 0
    if connection.vendor == "postgresql":
        assert "audit_run_2019_02" in names()


@postgresql
def test_many_writers_that_find_none_make_one(past: None):
    failures: list[BaseException] = []
    together = threading.Barrier(4, timeout=20)

    def write() -> None:
        try:
            together.wait()
            with transaction.atomic():
                recorded(finished_at=PAST)
        except BaseException as problem:
            failures.append(problem)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert Run.objects.count() == 4
    assert names().count("audit_run_2019_02") == 1


@postgresql
def test_a_reader_in_the_way_delays_no_writer(past: None, other: Any):
    """CREATE … PARTITION OF would queue every finish behind this reader."""
    other.execute("SELECT count(*) FROM audit_run")
    with transaction.atomic():
        ledger.record([run_record(finished_at=PAST)], finish_id=uuid4())
    other.execute("SELECT count(*) FROM audit_run")
    assert other.fetchone() == (1,)


@postgresql
def test_a_partition_dropped_behind_our_back_is_made_by_the_second_try(past: None):
    with clock.at(PAST):  # the present month is looked for once only
        recorded(finished_at=PAST)
        Run.objects.all().delete()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE audit_run_2019_02")
        record = run_record(finished_at=PAST)
        with pytest.raises(Exception, match="no partition of relation"):
            ledger.record([record], finish_id=uuid4())
        ledger.record([record], finish_id=uuid4())
    assert Run.objects.count() == 1


@postgresql
def test_the_present_month_is_looked_for_once(
    past: None, django_assert_num_queries: Any
):
    recorded()
    with django_assert_num_queries(0):  # the INSERT itself goes past Django's cursor
        recorded()


# --- dropped when nothing is left


@postgresql
def test_a_month_that_ended_is_dropped_once_it_is_empty(past: None):
    kept = recorded(finished_at=PAST)
    recorded(finished_at=PAST - timedelta(days=40))
    Run.objects.exclude(id=kept.id).delete()
    assert partitions.drop_empty(datetime(2019, 4, 1, tzinfo=UTC)) == [
        "audit_run_2019_01"
    ]
    assert Run.objects.get().id == kept.id


@postgresql
def test_a_month_that_has_only_just_ended_is_left_alone(past: None):
    recorded(finished_at=PAST)
    Run.objects.all().delete()
    ended = datetime(2019, 3, 1, tzinfo=UTC)
    assert partitions.drop_empty(ended) == []
    assert (
        partitions.drop_empty(ended + partitions.SETTLED - timedelta(seconds=1)) == []
    )
    assert partitions.drop_empty(ended + partitions.SETTLED) == ["audit_run_2019_02"]


@postgresql
def test_months_to_come_are_never_dropped(past: None):
    before = names()
    partitions.drop_empty(clock.now())
    assert set(before) - set(names()) == {
        name for name in before if name < f"audit_run_{clock.now():%Y_%m}"
    }
    assert partitions.ensure(clock.now()) == []


@postgresql
def test_a_drop_that_waits_for_a_reader_gives_up_and_is_completed_later(
    past: None, other: Any
):
    recorded(finished_at=PAST)
    Run.objects.all().delete()
    other.execute("SELECT count(*) FROM audit_run")  # holds its lock and its snapshot
    begun = clock.steady()
    assert partitions.drop_empty(datetime(2019, 6, 1, tzinfo=UTC)) == []
    assert clock.steady() - begun < 8
    pending = [p for p in partitions.existing("audit_run") if p.detaching]
    assert [p.name for p in pending] == ["audit_run_2019_02"]
    with transaction.atomic():  # finishes go on meanwhile
        recorded()
    other.connection.rollback()
    assert partitions.drop_empty(datetime(2019, 6, 1, tzinfo=UTC)) == [
        "audit_run_2019_02"
    ]
    assert Run.objects.count() == 1


@postgresql
def test_finishes_go_on_while_a_drop_waits(past: None, other: Any):
    recorded(finished_at=PAST)
    Run.objects.all().delete()
    other.execute("SELECT count(*) FROM audit_run")
    over = threading.Event()

    def drop() -> None:
        try:
            partitions.drop_empty(datetime(2019, 6, 1, tzinfo=UTC))
        finally:
            over.set()
            connections.close_all()

    thread = threading.Thread(target=drop)
    thread.start()
    stored, longest = 0, 0.0
    deadline = clock.steady() + 20
    while not over.is_set() and clock.steady() < deadline:
        begun = clock.steady()
        recorded()
        longest = max(longest, clock.steady() - begun)
        stored += 1
    thread.join(10)
    assert stored > 5
    assert longest < 0.8  # the drop waits for a second


@postgresql
def test_a_month_whose_drop_is_pending_takes_rows_again(past: None, other: Any):
    recorded(finished_at=PAST)
    Run.objects.all().delete()
    other.execute("SELECT count(*) FROM audit_run")
    partitions.drop_empty(datetime(2019, 6, 1, tzinfo=UTC))
    other.connection.rollback()
    record = recorded(finished_at=PAST)  # an archive is restored
    assert Run.objects.get().id == record.id


@postgresql
def test_a_detached_month_with_rows_is_left_to_an_operator(
    past: None, caplog: pytest.LogCaptureFixture
):
    record = recorded(finished_at=PAST)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_run DETACH PARTITION audit_run_2019_02")
    assert partitions.drop_empty(datetime(2019, 6, 1, tzinfo=UTC)) == []
    assert "audit_run_2019_02 is a detached partition of audit_run" in caplog.text
    partitions.make_room("audit_run", [PAST])  # whoever writes there attaches it again
    assert Run.objects.get().id == record.id


@postgresql
def test_a_detached_month_without_rows_is_dropped(past: None):
    recorded(finished_at=PAST)
    Run.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_run DETACH PARTITION audit_run_2019_02")
    assert partitions.drop_empty(datetime(2019, 6, 1, tzinfo=UTC)) == [
        "audit_run_2019_02"
    ]


@postgresql
def test_no_connection_is_left_behind(past: None):
    def sessions() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            return int(cursor.fetchone()[0])

    before = sessions()
    for back in range(3):
        recorded(finished_at=PAST - timedelta(days=40 * back))
    partitions.ensure(clock.now())
    wait_until(lambda: sessions() <= before, what="the connections are closed")


# --- plans


@postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("analyzed", [False, True])
def test_a_look_up_by_claim_opens_only_the_months_it_can_stand_in(analyzed: bool):
    now = clock.now()
    partitions.make_room("audit_run", [now - timedelta(days=70), now - timedelta(days=40)])  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE audit_run")  # and what ANALYZE thought of older rows
    ledger.record([run_record() for _ in range(5_000)], finish_id=uuid4())
    if analyzed:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE audit_run")
    record = recorded()
    since = clock.uuid7_time(record.id) - timedelta(hours=1)
    said = plan(
        "SELECT * FROM audit_run WHERE id = %s AND finished_at >= %s",
        [record.id, since],
    )
    month = f"audit_run_{now:%Y_%m}"
    assert f"Index Scan using {month}_pkey on {month}" in said
    for past_month in (now - timedelta(days=70), now - timedelta(days=40)):
        assert f"audit_run_{past_month:%Y_%m}" not in said
