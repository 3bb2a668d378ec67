"""Run the tests on SQLite and on PostgreSQL: a process of pytest for each.

Django reads DATABASE_URL once per process. So the pytest that was started starts
others with the same arguments, and says at the end what both did. A child knows
what it is by MILLRACE_TESTS_CHILD.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
CHILD = "MILLRACE_TESTS_CHILD"  # sqlite | postgresql
SECOND = "MILLRACE_TESTS_SECOND"  # set: what is marked `once` runs in the other process
COUNTS = "MILLRACE_TESTS_COUNTS"  # file for the closing line
NOTHING_COLLECTED = 5  # pytest's exit code


def is_child() -> bool:
    """Whether this process runs tests."""
    return CHILD in os.environ


def tidy_up_on_sigterm() -> None:
    """End as by Ctrl-C, so that fixtures end the processes that they started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def belongs_elsewhere(item: pytest.Item) -> bool:
    """Whether the other process runs this test."""
    marks = {mark.name for mark in item.iter_markers()}
    if marks & (DATABASES.keys() - {os.environ[CHILD]}):
        return os.environ[CHILD] not in marks
    return "once" in marks and SECOND in os.environ


def report_counts(stats: dict[str, list[Any]]) -> None:
    """Tell the process that was started how many passed, failed, ..."""
    if file := os.environ.get(COUNTS):
        words = ("passed", "failed", "error", "skipped", "xfailed", "deselected")
        counts = {word: len(stats[word]) for word in words if stats.get(word)}
        Path(file).write_text(json.dumps(counts))


def launch(*, arguments: list[str], directory: Path, wanted: str) -> int:
    """Run the children; return pytest's exit code for all of them."""
    names = list(DATABASES) if wanted == "both" else [wanted]
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tests-")))
        folder.chmod(0o755)
        children = [
            Child(
                name,
                arguments=_for_child(arguments, name),
                directory=directory,
                env=_environment(
                    name, folder=folder, stack=stack, second=name != names[0]
                ),
                log=folder / f"{name}.log" if len(names) > 1 else None,
            )
            for name in names
        ]
        with _passing_on_sigterm(children):
            codes = [child.watch() for child in children]
        parts = [child.closing_words() for child in children]
    say(f"\n{'; '.join(parts)}. {time.monotonic() - began:.0f} s in all.")
    real = [code for code in codes if code != NOTHING_COLLECTED]
    return max(real, key=abs) if real else NOTHING_COLLECTED


class Child:
    """A pytest process on one database."""

    def __init__(
        self,
        name: str,
        *,
        arguments: list[str],
        directory: Path,
        env: dict[str, str],
        log: Path | None,
    ) -> None:
        self.name = name
        self.log = log
        self.counts = Path(env[COUNTS])
        colour = ["--color=yes"] if log and sys.stdout.isatty() else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *colour, *arguments],
            cwd=directory,
            env=env,
            stdout=log.open("wb") if log else None,
            stderr=subprocess.STDOUT if log else None,
        )

    def watch(self) -> int:
        """Show its output until it ends."""
        say(f"\n--- {DATABASES[self.name]}")
        if self.log:
            with self.log.open("rb") as output:
                while self.process.poll() is None:
                    _show(output.read())
                    time.sleep(0.1)
                _show(output.read())
        return self._wait()

    def closing_words(self) -> str:
        """'612 passed, 3 skipped on SQLite'."""
        title = DATABASES[self.name]
        if not self.counts.exists():
            return f"no result on {title} (exit code {self.process.returncode})"
        counts: dict[str, int] = json.loads(self.counts.read_text())
        counts.pop("deselected", None)
        words = ", ".join(f"{n} {word}" for word, n in counts.items())
        return f"{words or 'nothing to run'} on {title}"

    def _wait(self) -> int:
        while True:
            try:
                return self.process.wait()
            except KeyboardInterrupt:
                continue  # the child has it too, and ends with its report


def say(text: str) -> None:
    """Print at once: the children write to the same place."""
    print(text, flush=True)


def _show(output: bytes) -> None:
    sys.stdout.write(output.decode(errors="replace"))
    sys.stdout.flush()


def _for_child(arguments: list[str], name: str) -> list[str]:
    """The same, without --db, and with a cache of its own: both write at once."""
    left = list(arguments)
    while "--db" in left:
        at = left.index("--db")
        del left[at : at + 2]
    left = [argument for argument in left if not argument.startswith("--db=")]
    cached = not any("no:cacheprovider" in argument for argument in left)
    return [*left, "-o", f"cache_dir=.pytest_cache/{name}"] if cached else left


def _environment(
    name: str, *, folder: Path, stack: ExitStack, second: bool
) -> dict[str, str]:
    env = {
        **os.environ,
        CHILD: name,
        COUNTS: str(folder / f"{name}.json"),
        "DJANGO_ENV": "test",
        "DATABASE_URL": _url(name, folder=folder, stack=stack),
        # Faults are judged by the keep-alive: short, so that the tests are.
        "FALCON_SERVER_KEEP_ALIVE_SECONDS": "2",
        # Playwright runs an event loop in the thread that uses the ORM.
        "DJANGO_ALLOW_ASYNC_UNSAFE": "true",
    }
    # Tests start a hundred processes: compiled once, each starts in a third of the time.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    if second:
        env[SECOND] = "1"
    return env


def _url(name: str, *, folder: Path, stack: ExitStack) -> str:
    if name == "sqlite":
        return f"sqlite:///{folder / 'millrace.sqlite3'}"
    if url := os.environ.get("TEST_DATABASE_URL"):
        return url
    from tests.databases import temporary_server

    return stack.enter_context(temporary_server()).url


@contextmanager
def _passing_on_sigterm(children: list[Child]) -> Iterator[None]:
    """Who stops the tests stops all of them, and the server with them."""

    def stop(*_: object) -> None:
        for child in children:
            child.process.terminate()

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
