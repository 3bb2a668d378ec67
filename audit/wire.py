"""wire: send a hot statement to PostgreSQL the cheap way, on Django's own connection.

Django's cursor merges parameters into the text, which costs more than the statement for
arrays of a hundred. Here they travel beside it, results come back in binary, and a
statement is prepared where the session is ours to keep (no transaction pooler).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection
from psycopg import Cursor
from psycopg.types.numeric import Int8BinaryDumper

# psycopg prepares nothing on a connection whose threshold is None, which Django sets.
PREPARE_AFTER = 5  # executions


def send(statement: str, params: Mapping[str, Any]) -> int:
    """Execute; how many rows it wrote. Raises what Django's own cursor would."""
    with _executed(statement, params, None) as cursor:
        return cursor.rowcount


def fetch(
    statement: str, params: Mapping[str, Any], *, row: Callable[..., Any] = tuple
) -> list[Any]:
    """Execute; the rows that it returns, each made by `row`."""
    with _executed(statement, params, row) as cursor:
        return cursor.fetchall()


def fetch_after(first: str, statement: str, params: Mapping[str, Any]) -> list[Any]:
    """Execute `first`, which has no parameters, and `statement` in one round trip."""
    raw = _raw()
    with (
        connection.wrap_database_errors,
        raw.pipeline(),
        Cursor(raw) as one,
        Cursor(raw) as two,
    ):
        one.execute(first, prepare=settings.DATABASE_LISTEN)
        _execute(two, statement, params, binary=True)
        return two.fetchall()


def _raw() -> Any:
    """psycopg's connection under Django's."""
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    raw = connection.connection
    if settings.DATABASE_LISTEN and raw.prepare_threshold is None:
        raw.prepare_threshold = PREPARE_AFTER
    return raw


@contextmanager
def _executed(
    statement: str, params: Mapping[str, Any], row: Callable[..., Any] | None
) -> Iterator[Cursor[Any]]:
    with connection.wrap_database_errors, Cursor(_raw()) as cursor:
        if row is not None:
            cursor.row_factory = lambda _: row
        _execute(cursor, statement, params, binary=row is not None)
        yield cursor


def _execute(
    cursor: Cursor[Any], statement: str, params: Mapping[str, Any], *, binary: bool
) -> None:
    # By the size of each number psycopg picks its type, and with each mix of types
    # the server would parse another statement.
    cursor.adapters.register_dumper(int, Int8BinaryDumper)
    cursor.execute(statement, params, prepare=settings.DATABASE_LISTEN, binary=binary)
