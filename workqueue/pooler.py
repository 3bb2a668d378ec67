"""pooler: does something between us and PostgreSQL hand our session to others?

Behind a pooler in transaction mode LISTEN is heard by nobody and a prepared statement
is found by chance. Both are off with DATABASE_LISTEN=off; whoever forgot that is told
at the start, not by errors here and there. Called by the processes and by `start`.
"""

from uuid import uuid4

import psycopg
from django.conf import settings
from django.db import connection

from workqueue import connections, sql

FORGOTTEN = (
    "between this process and PostgreSQL stands a connection pooler in transaction mode, and sessions do not last there: "
    "set DATABASE_LISTEN=off, and DATABASE_DIRECT_URL to the database itself, for migrations"
)


def trouble() -> str:
    """What is wrong, and what would be right; "" where nothing is."""
    if connection.vendor != "postgresql" or not settings.DATABASE_LISTEN:
        return ""
    try:
        return FORGOTTEN if _shared() else ""
    except psycopg.Error:
        return ""  # a database that is away is waited for, elsewhere


def _shared() -> bool:
    """Whether what one connection sets is lost to it, or seen by the other."""
    with connections.plain("start") as one, connections.plain("start") as two:
        if one.info.backend_pid == _ask(one, sql.SERVER_PROCESS):
            return False  # nobody stands between
        mark = str(uuid4())
        one.execute(sql.MARK_SESSION, {"mark": mark})
        with two.transaction():  # holds the session that `one` has just given back
            return _ask(two, sql.MARK) == mark or _ask(one, sql.MARK) != mark


def _ask(one: psycopg.Connection[tuple[object, ...]], statement: str) -> object:
    row = one.execute(statement).fetchone()
    return row[0] if row else None
