"""sources: what a listener waits on, per database.

PostgreSQL's LISTEN; SQLite's PRAGMA data_version; and, where there is no LISTEN, a
datagram from another process under the same `start`. Each is opened, asked and closed
by the one thread of `wakeup.Listener`; what it raises means that it is lost.
"""

import os
import socket
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.sql import SQL, Identifier

from workqueue import connections, sql

LOOK = 0.1  # seconds between looks at SQLite's data_version
SUFFIX = ".wake"


class Source:
    """Something that can tell that there may be work."""

    every: float | None = None  # seconds between questions; None: only when readable

    def open(self) -> None:
        """Begin."""

    def descriptor(self) -> int | None:
        """What becomes readable; None: nothing does."""

    def heard(self) -> bool:
        """Whether there was something since the last question. Never waits."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back everything, opened or not."""


class Channel(Source):
    """PostgreSQL's LISTEN, on a connection outside the pool."""

    def __init__(self, name: str) -> None:
        """`name` of the channel."""
        self._name = name
        self._connection: psycopg.Connection[Any] | None = None

    def open(self) -> None:
        """Connect and listen."""
        self._connection = connections.plain("listener")
        self._connection.execute(SQL(sql.LISTEN).format(Identifier(self._name)))

    def descriptor(self) -> int | None:
        """The connection's socket."""
        return self._connection.pgconn.socket if self._connection else None

    def heard(self) -> bool:
        """Take what has arrived. Raises when the server has hung up."""
        if self._connection is None:
            return False
        server = self._connection.pgconn
        server.consume_input()
        heard = False
        while server.notifies() is not None:
            heard = True
        return heard

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class DataVersion(Source):
    """SQLite: a number that changes when another connection has committed."""

    every = LOOK

    def __init__(self, path: str) -> None:
        """`path` of the database's file."""
        self._address = f"{Path(path).absolute().as_uri()}?mode=ro"
        self._connection: sqlite3.Connection | None = None
        self._seen = 0

    def open(self) -> None:
        """Open the file, for reading only."""
        self._connection = sqlite3.connect(
            self._address, uri=True, isolation_level=None, check_same_thread=False
        )
        self._connection.execute(sql.QUERY_ONLY)
        self.heard()

    def heard(self) -> bool:
        """Whether somebody has committed."""
        if self._connection is None:
            return False
        version = self._connection.execute(sql.DATA_VERSION).fetchone()[0]
        before, self._seen = self._seen, version
        return bool(before != version)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Datagrams(Source):
    """A Unix socket of our own in the folder that `start` made."""

    def __init__(self, folder: str) -> None:
        """`folder` of all processes under one start."""
        self._path = Path(folder) / f"{os.getpid()}-{uuid4().hex[:8]}{SUFFIX}"
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Bind the name."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(self._path))

    def descriptor(self) -> int | None:
        """The socket."""
        return self._socket.fileno() if self._socket else None

    def heard(self) -> bool:
        """Take all that has arrived."""
        if self._socket is None:
            return False
        heard = False
        with suppress(BlockingIOError):
            while self._socket.recv(16):
                heard = True
        return heard

    def close(self) -> None:
        """Take the name away."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._path.unlink(missing_ok=True)


def by_database() -> bool:
    """Whether processes are woken by NOTIFY."""
    return connection.vendor == "postgresql" and bool(settings.DATABASE_LISTEN)


def present(channel: str) -> list[Source]:
    """What there is to wait on here. Empty: only polling."""
    if by_database():
        return [Channel(channel)]
    found: list[Source] = []
    if settings.WAKE_SOCKET:
        found.append(Datagrams(settings.WAKE_SOCKET))
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite" and "memory" not in name:
        found.append(DataVersion(name))
    return found


def send_datagrams(folder: str) -> None:
    """Wake every process that has a socket in the folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for path in Path(folder).glob(f"*{SUFFIX}"):
            try:
                sender.sendto(b"work", str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)  # its process was killed
            except (BlockingIOError, FileNotFoundError):
                continue  # it has enough to wake it, or has just ended
