"""connections: how many a process may have, and those that stand outside its pool.

Called by the commands before their first query. A full pool never stops the beat,
the listener or the notifier: each has a connection outside it, counted in the budget
(`outside_pool`). SQLite has no pool: nothing is clamped there, `size()` is None.
"""

import logging
import os
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from django.conf import settings
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper

from workqueue import sql
from workqueue.lifeline import Guarded, Paced, Unpooled, still_open

ALIAS = "default"
RESERVED = 4  # connections for a worker's own threads; items get the rest
WAIT_FOR_ONE = 5.0  # seconds that a thread waits for a pooled connection
GIVE_UP = 5.0  # seconds; then the pool waits for the next demand instead of backing off

# Half-open connections are noticed after about half a minute, from either side.
# No `options=-c ...`: transaction poolers refuse to start with it.
TCP = {
    "connect_timeout": 5,  # seconds
    "keepalives": 1,
    "keepalives_idle": 15,  # seconds
    "keepalives_interval": 5,  # seconds
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The connections that a kind of process needs where nobody says otherwise."""

    size: int
    overflow: int


ROLES = {
    "web": Need(size=5, overflow=5),
    "server": Need(size=2, overflow=2),
    "worker": Need(size=10 + RESERVED, overflow=0),  # its concurrency plus RESERVED
    "jobworker": Need(size=5, overflow=5),
}

# Django keeps its pools in this dictionary of the class, by alias.
_pools: dict[str, Any] = cast(Any, DatabaseWrapper)._connection_pools
_kind = ""  # of this process; "" until use_pool
_wanted: int | None = None  # connections that this worker asked for
_before: dict[str, Any] | None = None  # OPTIONS as they were configured


def use_pool(*, kind: str, wanted: int | None = None) -> None:
    """Give this process the pool of its role. Before its first query.

    `wanted`: the connections that a worker needs, its concurrency plus RESERVED; other
    roles have theirs. Without effect on SQLite.
    """
    global _kind, _wanted, _before
    _kind, _wanted = kind, wanted
    if not _is_postgresql():
        return
    close_all()
    configured = connections.settings[ALIAS]
    configured["CONN_MAX_AGE"] = 0  # closing gives a pooled connection back
    if not settings.DATABASE_LISTEN:
        configured["DISABLE_SERVER_SIDE_CURSORS"] = True  # behind a transaction pooler
    _before = configured["OPTIONS"] if _before is None else _before
    configured["OPTIONS"] = {
        **TCP,
        "application_name": f"millrace {kind}",
        **_before,
        "pool": {
            "min_size": 1,
            "max_size": _total(),
            "timeout": WAIT_FOR_ONE,
            "reconnect_timeout": GIVE_UP,
            "check": _check,
            "connection_class": Paced,
            "num_workers": 2,
        },
    }
    # The pool warns of every single attempt; our loops say once what is wrong.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def use_no_pool() -> None:
    """Undo use_pool. Tests only."""
    global _kind, _wanted, _before
    if _before is not None:
        close_all()
        connections.settings[ALIAS]["OPTIONS"] = _before
    _kind, _wanted, _before = "", None, None


def resize(wanted: int) -> None:
    """Let a worker's pool follow its concurrency, live; a set DB_POOL_SIZE still wins.

    Connections over the new size go when they have been idle for a while.
    """
    global _wanted
    _wanted = wanted
    if size() is None:
        return
    connections.settings[ALIAS]["OPTIONS"]["pool"]["max_size"] = _total()
    if pool := _pools.get(ALIAS):
        pool.resize(1, _total())


def size() -> int | None:
    """The connections that the pool may have; None: there is no pool."""
    if not _kind or not _is_postgresql():
        return None
    return _total()


def serves_items() -> int | None:
    """The items that the pool can serve at once, at least 1; None: any number."""
    pool = size()
    return None if pool is None else max(1, pool - RESERVED)


def outside_pool() -> int:
    """The connections besides the pool: the beat's, and two for waking each other."""
    return 3 if _is_postgresql() and settings.DATABASE_LISTEN else 1


def report() -> dict[str, int | None]:
    """What a process says with its beat; the budget adds it up. Plain JSON."""
    return {"pool": size(), "outside": outside_pool()}


def unpooled(name: str = "beat") -> None:
    """Give the calling thread a connection of its own, outside the pool and guarded.

    The thread's last act must be `connections.close_all()`.
    """
    if not _is_postgresql():
        return  # there each thread has its own anyway
    configured = connections.settings[ALIAS]
    options = {**TCP, **configured["OPTIONS"], "application_name": _label(name)}
    options.pop("pool", None)
    own = {**configured, "CONN_MAX_AGE": None, "OPTIONS": options}
    connections[ALIAS] = Unpooled(own, ALIAS)


def plain(name: str) -> psycopg.Connection[Any]:
    """A guarded autocommit connection that Django does not know. PostgreSQL only."""
    wrapper = cast(DatabaseWrapper, connections[ALIAS])
    params = {**TCP, **wrapper.get_connection_params()}
    return Guarded.connect(
        **{**params, "application_name": _label(name), "autocommit": True}
    )


def end_if_frozen() -> None:
    """End the caller's transaction, with its locks, where this process stands still in it for 10 s.

    Who judges a frozen process would wait for the rows that it has locked. SQLite frees
    them with the process alone.
    """
    if _is_postgresql():
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(sql.END_IF_FROZEN)


def close_all() -> None:
    """Close the calling thread's connection, and the pool. A process's last act."""
    connections.close_all()
    if pool := _pools.pop(ALIAS, None):
        pool.close()


def _is_postgresql() -> bool:
    return connections[ALIAS].vendor == "postgresql"


def _total() -> int:
    need = ROLES[_kind]
    base = need.size if _wanted is None else _wanted
    if settings.DB_POOL_SIZE is not None:
        base = settings.DB_POOL_SIZE
    over = settings.DB_MAX_OVERFLOW
    return max(1, base + (need.overflow if over is None else over))


def _label(name: str) -> str:
    return f"millrace {_kind} {name}" if _kind else f"millrace {name}"


def _check(connection: psycopg.Connection[Any]) -> None:
    """Refuse a lost connection; it is seldom alone, so look at the rest of the pool."""
    try:
        still_open(connection)
    except psycopg.OperationalError:
        if pool := _pools.get(ALIAS):
            pool.check()
        raise


_parents: list[Any] = []  # keeps what must not be finalised in a child


def _forget_parents_connections() -> None:
    """In a child just forked: let go of what is the parent's without closing it."""
    _parents.extend(_pools.values())
    _pools.clear()
    for wrapper in connections.all(initialized_only=True):
        _parents.append(wrapper.connection)
        wrapper.connection = None


os.register_at_fork(after_in_child=_forget_parents_connections)
