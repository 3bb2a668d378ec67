"""upgrade: bring the schema to this release; one process at a time.

Only `start` in a mode that migrates calls this. A schema that is newer, or was
applied in part, is refused with what to do: going on would make it worse.
"""

import fcntl
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, OperationalError, connection

from project import sql
from project.configuration import EXIT_CONFIGURATION
from workqueue import connections, schema

logger = logging.getLogger(__name__)

type Attempt = Callable[[], bool]  # True: the lock is ours

EXIT_UNAVAILABLE = 69  # sysexits.h: EX_UNAVAILABLE
SAY_AFTER = 2.0  # seconds of waiting before the first word about it
# What a server answers when waiting will not help; libpq gives no code for these.
WRONG_ADDRESS = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "no password supplied",
    "invalid sslmode value",
    "invalid channel_binding value",
    "invalid target_session_attrs value",
)


class Refused(Exception):
    """`start` cannot go on. The text is for people; exit_code is for programs."""

    def __init__(self, text: str, *, exit_code: int = EXIT_CONFIGURATION) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def wait_for_database() -> None:
    """Return once it answers. Refused: it never did, or says that the address is wrong."""
    deadline = time.monotonic() + settings.DATABASE_WAIT.total_seconds()
    said = False
    while True:
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql.PING)
            return
        except DatabaseError as problem:
            refused, reason = refusal(problem), said_by(problem)
        finally:
            connection.close()
        if refused.exit_code == EXIT_CONFIGURATION:
            raise refused
        if time.monotonic() > deadline:
            raise Refused(
                f"the database of DATABASE_URL did not answer for {settings.DATABASE_WAIT.total_seconds():.0f} s ({reason})",
                exit_code=EXIT_UNAVAILABLE,
            )
        if not said:
            logger.warning("waiting for the database: %s", reason)
            said = True
        time.sleep(1)


def refusal(problem: Exception, *, address: str = "DATABASE_URL") -> Refused:
    """What to say of a database that cannot be asked, and whether waiting may help."""
    reason = said_by(problem)
    if not isinstance(problem, OperationalError | psycopg.OperationalError):
        return Refused(f"{address} is wrong: {reason}")  # a file of something else
    if any(words in reason for words in WRONG_ADDRESS):
        return Refused(f"{address} is wrong: the server says {reason!r}")
    text = f"the database of {address} does not answer: {reason}"
    return Refused(text, exit_code=EXIT_UNAVAILABLE)


def said_by(problem: Exception) -> str:
    """What the driver says, in one line: the server's own words, or how it was not reached."""
    lines = [line.strip() for line in str(problem).strip().splitlines()]
    fatal = [line for line in lines if "FATAL:" in line]
    # "... failed: Connection refused", then a question to the reader on a line of its own.
    return (fatal or lines or [type(problem).__name__])[0]


def upgrade(*, environment: dict[str, str]) -> None:
    """Apply what is missing, under the lock. Refused: the schema is newer or in parts."""
    with _lock():
        found = schema.look()
        _refuse(found)
        if found.missing:
            logger.info("applying %s migrations", len(found.missing))
            _migrate(environment)
    connection.close()


def _refuse(found: schema.Schema) -> None:
    if found.partial:
        raise Refused(
            "the schema was applied in part: " + "; ".join(found.partial) + ".\n"
            "  To recover: stop all processes and restore the backup made before the upgrade, then start again.\n"
            "  Without a backup: compare with `manage.py sqlmigrate <app> <name>`, make the schema agree with one side,\n"
            "  record it with `manage.py migrate --fake <app> <name>`, and start again. Nothing was changed now."
        )
    if found.newer:
        raise Refused(
            f"the database was migrated by a newer release ({', '.join(found.newer)} is unknown here).\n"
            "  To recover: start that release or a newer one; or stop all processes, restore the backup made before\n"
            "  the upgrade, and start this release again. Nothing was changed now."
        )


def _migrate(environment: dict[str, str]) -> None:
    """By the direct address, where there is one: that takes a process of its own."""
    if settings.DATABASE_DIRECT_URL:
        problem = _migrate_elsewhere(
            {**environment, "DATABASE_URL": settings.DATABASE_DIRECT_URL}
        )
    else:
        problem = _migrate_here()
    if problem:
        raise Refused(
            f"a migration failed: {problem}\n"
            "  Those before it are applied; on PostgreSQL the failed one was rolled back whole.\n"
            "  To recover: correct the cause and start again, or restore the backup made before the upgrade.",
            exit_code=1,
        )


def _migrate_here() -> str:
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except Exception as problem:
        logger.exception("a migration failed")
        return f"{type(problem).__name__}: {problem}"
    return ""


def _migrate_elsewhere(environment: dict[str, str]) -> str:
    environment.pop("DATABASE_URL_FILE", None)
    result = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0"],
        cwd=settings.BASE_DIR,
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not result.returncode:
        return ""
    logger.error("a migration failed\n%s", result.stderr.strip())
    return (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[
        -1
    ]


@contextmanager
def _lock() -> Iterator[None]:
    """Hold the lock of migrations; wait for it, and say so."""
    waiting = time.monotonic()
    said = False
    with _attempts() as attempt:
        while not attempt():
            if not said and time.monotonic() - waiting > SAY_AFTER:
                logger.warning("waiting: another process applies migrations")
                said = True
            time.sleep(0.2)
        yield


@contextmanager
def _attempts() -> Iterator[Attempt]:
    if settings.SQLITE_FILE:
        # Kept afterwards: removing a lock file lets two processes hold "the" lock.
        with Path(f"{settings.SQLITE_FILE}.lock").open("a") as file:
            yield lambda: _try_file(file.fileno())
    else:
        try:
            with _direct() as direct:
                yield lambda: _try_advisory(direct)
        except psycopg.Error as problem:
            given = settings.DATABASE_DIRECT_URL
            name = "DATABASE_DIRECT_URL" if given else "DATABASE_URL"
            raise refusal(problem, address=name) from None


def _direct() -> psycopg.Connection:
    """A connection that no pooler hands to others: the lock lives in its session."""
    if settings.DATABASE_DIRECT_URL:
        return psycopg.connect(settings.DATABASE_DIRECT_URL, autocommit=True)
    return connections.plain("start")


def _try_file(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_advisory(direct: psycopg.Connection) -> bool:
    row = direct.execute(sql.TRY_MIGRATION_LOCK).fetchone()
    return bool(row and row[0])
