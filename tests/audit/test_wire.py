"""Hot statements on Django's own connection."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from audit import wire

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def prepared() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        return int(cursor.fetchone()[0])


def test_rows_come_back_in_their_own_types() -> None:
    id = uuid4()
    statement = "SELECT %(id)s::uuid, unnest(%(numbers)s::bigint[])"
    rows = wire.fetch(statement, {"id": id, "numbers": [1, 2**40]})
    assert rows == [(id, 1), (id, 2**40)]
    assert isinstance(rows[0][0], UUID)


def test_a_row_is_made_by_whoever_is_named() -> None:
    assert wire.fetch("SELECT 1, 2", {}, row=lambda row: sum(row)) == [3]


def test_the_number_of_rows_written_is_told() -> None:
    wire.send("CREATE TEMPORARY TABLE written (n int)", {})
    assert (
        wire.send("INSERT INTO written SELECT unnest(%(n)s::int[])", {"n": [1, 2, 3]})
        == 3
    )


def test_a_statement_is_prepared_once_however_large_its_numbers_are(
    settings: Any,
) -> None:
    before = prepared()
    for n in (1, 2**20, 2**40, 1, 2, 3, 4, 5):
        wire.fetch("SELECT %(n)s::bigint + 17", {"n": n})
    assert prepared() == before + 1


def test_nothing_is_prepared_where_a_pooler_shares_the_session(settings: Any) -> None:
    settings.DATABASE_LISTEN = False
    connection.close()
    for n in range(8):
        wire.fetch("SELECT %(n)s::bigint + 18", {"n": n})
    assert prepared() == 0


def test_errors_are_djangos_own() -> None:
    twice = "INSERT INTO scheduler_masterlease (id, node, term) VALUES (2, '', 0)"
    with pytest.raises(IntegrityError):
        wire.send(twice, {})


def test_nothing_is_sent_in_a_transaction_that_is_spoilt() -> None:
    with transaction.atomic():
        connection.needs_rollback = True
        with pytest.raises(TransactionManagementError):
            wire.fetch("SELECT 1", {})
