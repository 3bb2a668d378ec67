"""lifeline: connections that neither wait for ever nor join a stampede.

Used below the pool, by the beat, the listener and the notifier. No timeout of the
server's helps where the server itself is frozen or a network swallows packets, so
the deadline is the client's.
"""

import logging
import select
import threading
import time
from typing import Any, NoReturn, Self, cast

import psycopg
from django.conf import settings
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

logger = logging.getLogger(__name__)

PACE = 1.0  # seconds between attempts to connect while they fail
SHORTEST_PATIENCE = 1.0  # seconds


class _Pace:
    """When this process last failed to connect. Shared by all its threads."""

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self._lock = threading.Lock()
        self._failing = False
        self._tried = 0.0  # time.monotonic()

    def take_turn(self) -> None:
        """Let the caller try, or raise at once: somebody has just failed."""
        with self._lock:
            due = self._tried + PACE - time.monotonic()
            if self._failing and due > 0:
                raise psycopg.OperationalError(
                    f"the database could not be reached; next attempt in {due:.1f} s"
                )
            self._tried = time.monotonic()

    def tell(self, *, failed: bool) -> None:
        """Take note of how the attempt went. One that went well lets everybody try."""
        self._failing = failed


_pace = _Pace()


class Paced(psycopg.Connection[Any]):
    """One attempt to connect per second and process, as long as they fail."""

    @classmethod
    def connect(cls, conninfo: str = "", **params: Any) -> Self:
        """Connect, unless an attempt of this process failed within the last second."""
        _pace.take_turn()
        try:
            connection = super().connect(conninfo, **params)
        except psycopg.OperationalError:
            _pace.tell(failed=True)
            raise
        _pace.tell(failed=False)
        return connection


class Guarded(Paced):
    """No statement on it waits longer than a beat.

    After that it is cancelled, the connection is closed and OperationalError raised.
    """

    def wait[T](
        self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None
    ) -> T:
        """Drive psycopg's generator by the socket, up to the deadline."""
        deadline = time.monotonic() + _patience()
        try:
            wants = next(gen)
            while True:
                wants = gen.send(self._ready(wants, deadline - time.monotonic()))
        except StopIteration as end:
            return cast(T, end.value)

    def _ready(self, wants: Wait, seconds: float) -> Ready:
        poll = select.poll()
        reads, writes = bool(wants & Wait.R), bool(wants & Wait.W)
        flags = (select.POLLIN if reads else 0) | (select.POLLOUT if writes else 0)
        poll.register(self.pgconn.socket, flags)
        events = poll.poll(max(0.0, seconds) * 1000)
        if not events:
            self._give_up()
        got = events[0][1]
        if got & ~(select.POLLIN | select.POLLOUT):
            return Ready.RW  # an error or a hang-up: reading will tell which
        return Ready(
            (Ready.R if got & select.POLLIN else 0)
            | (Ready.W if got & select.POLLOUT else 0)
        )

    def _give_up(self) -> NoReturn:
        try:
            # A statement that waits for a lock would otherwise wait on, one per beat.
            self.cancel_safe(timeout=1.0)
        except Exception as problem:
            logger.debug("could not cancel: %s", problem)
        self.pgconn.finish()
        raise psycopg.OperationalError("the database did not answer in time")


class Unpooled(DatabaseWrapper):
    """Django's wrapper with a guarded connection of its own, READ COMMITTED."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect past the pool."""
        self.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return Guarded.connect(**conn_params)


def still_open(connection: psycopg.Connection[Any]) -> None:
    """Raise where the server has hung up on an idle connection.

    Asks the socket, not the server: `SELECT 1` would be a transaction per pass, more
    than a standby's whole budget. On an idle connection nothing is readable but bad
    news.
    """
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    if poll.poll(0):
        connection.close()
        raise psycopg.OperationalError("the server closed this connection")


def _patience() -> float:
    return max(SHORTEST_PATIENCE, settings.KEEP_ALIVE.total_seconds() * 0.4)
