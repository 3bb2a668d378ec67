import time
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID, uuid4

import pytest
from django.db import connection, transaction
from django.db.models import DateTimeField, ExpressionWrapper
from hypothesis import given
from hypothesis import strategies as st

from audit import clock
from audit.models import NodeEvent
from tests.audit.conftest import plan

MOMENT = datetime(2026, 3, 14, 15, 9, 26, 535897, tzinfo=UTC)


# --- this process's idea of database time


@pytest.mark.once
def test_without_a_sample_the_machines_clock_serves():
    assert abs(clock.now().timestamp() - time.time()) < 5
    assert clock.skew() == timedelta()


@pytest.mark.once
def test_after_a_sample_it_is_the_databases_time_however_wrong_this_machine_is():
    ahead = datetime.fromtimestamp(time.time() + 3 * 86_400, UTC)
    sent = clock.steady()
    assert clock.sample(database=ahead, sent=sent, received=sent + 0.01)
    assert abs(clock.now() - ahead) < timedelta(seconds=5)
    assert abs(clock.skew() + timedelta(days=3)) < timedelta(seconds=5)


@pytest.mark.once
def test_a_sample_that_took_long_is_thrown_away_for_a_better_one_before_it():
    sent = clock.steady()
    assert clock.sample(database=MOMENT, sent=sent, received=sent + 0.1)
    later = MOMENT + timedelta(days=1)
    assert not clock.sample(database=later, sent=sent, received=sent + 0.21)
    assert abs(clock.now() - MOMENT) < timedelta(seconds=5)


@pytest.mark.once
def test_the_first_sample_is_better_than_a_wrong_clock_however_long_it_took():
    sent = clock.steady()
    assert clock.sample(database=MOMENT, sent=sent, received=sent + 8)
    assert abs(clock.now() - MOMENT) < timedelta(seconds=10)


@pytest.mark.once
def test_steady_time_never_goes_back():
    samples = [clock.steady() for _ in range(1_000)]
    assert samples == sorted(samples)


@pytest.mark.once
def test_clocks_that_stand_still_go_on_afterwards():
    with clock.at(MOMENT):
        assert clock.now() == clock.fixed() == MOMENT
        with clock.at(MOMENT + timedelta(days=1)):
            assert clock.now() == MOMENT + timedelta(days=1)
        assert clock.now() == MOMENT
    assert clock.fixed() is None


# --- inside a statement


def stamped(expression: object) -> datetime:
    """What the database writes for it."""
    event = NodeEvent.objects.create(node_id=uuid4(), node="n", kind="web", type="note", at=expression)  # fmt: skip
    return NodeEvent.objects.get(pk=event.pk).at


@pytest.mark.django_db
def test_the_database_writes_its_own_time():
    assert abs(stamped(clock.DatabaseNow()).timestamp() - time.time()) < 60


@pytest.mark.django_db
def test_it_moves_within_a_transaction():
    with transaction.atomic():
        first, second = stamped(clock.DatabaseNow()), stamped(clock.DatabaseNow())
    assert second > first


@pytest.mark.django_db
def test_it_stands_still_with_the_others():
    with clock.at(MOMENT):
        assert stamped(clock.DatabaseNow()) == MOMENT
        assert stamped(clock.DatabaseNow(once=True)) == MOMENT
        assert stamped(clock.later(90)) == MOMENT + timedelta(seconds=90)
        assert stamped(clock.earlier(timedelta(days=2))) == MOMENT - timedelta(days=2)


@pytest.mark.django_db
@pytest.mark.parametrize("seconds", [0, 0.25, -0.25, 86_400, -3_600.5])
def test_shifted_by_seconds(seconds: float):
    now = stamped(clock.DatabaseNow())
    there = stamped(clock.later(seconds))
    assert abs(there - now - timedelta(seconds=seconds)) < timedelta(seconds=30)


@pytest.mark.django_db
def test_rows_are_compared_with_it():
    stamped(MOMENT)
    stamped(clock.later(3_600))
    past = NodeEvent.objects.filter(at__lt=clock.DatabaseNow(once=True))
    assert past.count() == 1
    assert (
        NodeEvent.objects.filter(at__lt=clock.earlier(timedelta(hours=1))).count() == 1
    )


@pytest.mark.postgresql
@pytest.mark.django_db
def test_once_per_statement_it_uses_an_index_and_each_time_it_does_not():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    once, each = (
        plan(
            str(
                NodeEvent.objects.filter(
                    at__gt=ExpressionWrapper(now, output_field=DateTimeField())
                ).query
            )
        )
        for now in (clock.DatabaseNow(once=True), clock.DatabaseNow())
    )
    assert "Index Cond" in once
    assert "Index Cond" not in each


# --- ids


@given(
    st.datetimes(
        min_value=datetime(1970, 1, 2),  # noqa: DTZ001 - hypothesis wants them so
        max_value=datetime(9990, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    )
)
@pytest.mark.once
def test_an_id_holds_its_time_to_the_millisecond(moment: datetime):
    id = clock.uuid7(moment)
    assert (id.version, id.variant) == (7, RFC_4122)
    assert abs(clock.uuid7_time(id) - moment) < timedelta(milliseconds=2)


@pytest.mark.once
def test_ids_sort_by_time_and_are_unique():
    ids = [clock.uuid7(MOMENT + timedelta(milliseconds=2 * n)) for n in range(500)]
    assert ids == sorted(ids)
    assert len({clock.uuid7(MOMENT) for _ in range(10_000)}) == 10_000


@pytest.mark.sqlite
@pytest.mark.django_db
def test_sqlite_has_the_functions_of_postgresqls_statements():
    with connection.cursor() as cursor:
        cursor.execute("SELECT uuid7(), uuid7(), clock_timestamp()")
        one, two, now = cursor.fetchone()
    assert one != two
    assert abs(clock.uuid7_time(UUID(one)) - clock.now()) < timedelta(minutes=1)
    assert datetime.fromisoformat(now).replace(tzinfo=UTC) - clock.now() < timedelta(minutes=1)  # fmt: skip
