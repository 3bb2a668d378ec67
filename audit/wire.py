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


@contextmanager
def _executed(
    statement: str, params: Mapping[str, Any], row: Callable[..., Any] | None
) -> Iterator[Cursor[Any]]:
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    raw = connection.connection
    prepare = settings.DATABASE_LISTEN
    if prepare and raw.prepare_threshold is None:
        raw.prepare_threshold = PREPARE_AFTER
    with connection.wrap_database_errors, Cursor(raw) as cursor:
        # By the size of each number psycopg picks its type, and with each mix of types
        # the server would parse another statement.
        cursor.adapters.register_dumper(int, Int8BinaryDumper)
        if row is not None:
            cursor.row_factory = lambda _: row
        cursor.execute(statement, params, prepare=prepare, binary=row is not None)
        yield cursor
