"""Run the tests on SQLite and on PostgreSQL: several processes of pytest at once.

Django reads DATABASE_URL once per process. So the pytest that was started starts
others with the same arguments, and says at the end what all did. A whole run has two
processes per database: races, which mostly wait, with the walks over all pages, which
take as long as all else; and the rest, which computes, more nicely, so that the
deadlines of races hold. A child knows what it is by MILLRACE_TESTS_CHILD.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
CHILD = "MILLRACE_TESTS_CHILD"  # sqlite | postgresql
SHARE = "MILLRACE_TESTS_SHARE"  # all | races | others
SECOND = "MILLRACE_TESTS_SECOND"  # set: what is marked `once` runs in the other process
COUNTS = "MILLRACE_TESTS_COUNTS"  # file for the closing line
NOTHING_COLLECTED = 5  # pytest's exit code
NICE = 5  # what computes gives way to what waits


def is_child() -> bool:
    """Whether this process runs tests."""
    return CHILD in os.environ


def share() -> str:
    """Which part of the tests this process runs: all, races or others."""
    return os.environ.get(SHARE, "all")


def tidy_up_on_sigterm() -> None:
    """End as by Ctrl-C, so that fixtures end the processes that they started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def belongs_elsewhere(item: pytest.Item) -> bool:
    """Whether the other process runs this test."""
    marks = {mark.name for mark in item.iter_markers()}
    if marks & (DATABASES.keys() - {os.environ[CHILD]}):
        return os.environ[CHILD] not in marks
    beside = bool(marks & {"race", "walk"})
    if os.environ[SHARE] != "all" and beside != (os.environ[SHARE] == "races"):
        return True
    return "once" in marks and SECOND in os.environ


def report_counts(stats: dict[str, list[Any]]) -> None:
    """Tell the process that was started how many passed, failed, ..."""
    if file := os.environ.get(COUNTS):
        words = ("passed", "failed", "error", "skipped", "xfailed", "deselected")
        counts = {word: len(stats[word]) for word in words if stats.get(word)}
        Path(file).write_text(json.dumps(counts))


def launch(*, arguments: list[str], directory: Path, wanted: str, whole: bool) -> int:
    """Run the children; return pytest's exit code for all of them.

    `whole`: no file was named, so it is worth while to divide the work.
    """
    names = list(DATABASES) if wanted == "both" else [wanted]
    shares = ["others", "races"] if whole else ["all"]
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tests-")))
        folder.chmod(0o755)
        children = []
        for name in names:
            url = _url(name, folder=folder, stack=stack)
            for share in shares:
                env = _environment(name, share, url=url, folder=folder)
                if name != names[0]:
                    env[SECOND] = "1"
                child = Child(
                    name, share, arguments=arguments, directory=directory, env=env
                )
                children.append(child)
                child.start(
                    log=folder / f"{name}-{share}.log"
                    if len(names) * len(shares) > 1
                    else None
                )
        with _passing_on_sigterm(children):
            codes = [child.watch() for child in children]
        said = [_closing_words(name, children) for name in names]
    say(f"\n{'; '.join(said)}. {time.monotonic() - began:.0f} s in all.")
    real = [abs(code) for code in codes if code != NOTHING_COLLECTED]
    return max(real) if real else NOTHING_COLLECTED


class Child:
    """A pytest process: a share of the tests on one database."""

    def __init__(
        self,
        name: str,
        share: str,
        *,
        arguments: list[str],
        directory: Path,
        env: dict[str, str],
    ) -> None:
        self.name = name
        self.share = share
        self.arguments = _for_child(arguments, f"{name}-{share}")
        self.directory = directory
        self.env = env
        self.log: Path | None = None

    def start(self, *, log: Path | None) -> None:
        """Start it; with a log, its output is shown when its turn comes."""
        self.log = log
        colour = ["--color=yes"] if log and sys.stdout.isatty() else []
        with log.open("wb") if log else nullcontext() as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *colour, *self.arguments],
                cwd=self.directory,
                env=self.env,
                stdout=out,
                stderr=subprocess.STDOUT if log else None,
            )
        if self.share == "others":
            os.setpriority(os.PRIO_PROCESS, self.process.pid, NICE)

    def watch(self) -> int:
        """Show its output until it ends."""
        title = DATABASES[self.name]
        say(f"\n--- {title}" if self.share == "all" else f"\n--- {title}, {self.share}")
        if self.log:
            with self.log.open("rb") as output:
                while self.process.poll() is None:
                    _show(output.read())
                    time.sleep(0.1)
                _show(output.read())
        return self._wait()

    def counts(self) -> dict[str, int]:
        """How many passed, failed, ...; "broken off" where it came to no end."""
        file = Path(self.env[COUNTS])
        if not file.exists():
            return {} if self.process.returncode == 0 else {"process broken off": 1}
        counts: dict[str, int] = json.loads(file.read_text())
        counts.pop("deselected", None)
        return counts

    def _wait(self) -> int:
        while True:
            try:
                return self.process.wait()
            except KeyboardInterrupt:
                continue  # the child has it too, and ends with its report


def _closing_words(name: str, children: list[Child]) -> str:
    """'612 passed, 3 skipped on SQLite'."""
    total: Counter[str] = Counter()
    for child in children:
        if child.name == name:
            total.update(child.counts())
    words = ", ".join(f"{n} {word}" for word, n in total.items())
    return f"{words or 'nothing to run'} on {DATABASES[name]}"


def say(text: str) -> None:
    """Print at once: the children write to the same place."""
    print(text, flush=True)


def _show(output: bytes) -> None:
    sys.stdout.write(output.decode(errors="replace"))
    sys.stdout.flush()


def _for_child(arguments: list[str], cache: str) -> list[str]:
    """The same, without --db, and with a cache of its own: both write at once."""
    left = list(arguments)
    while "--db" in left:
        at = left.index("--db")
        del left[at : at + 2]
    left = [argument for argument in left if not argument.startswith("--db=")]
    cached = not any("no:cacheprovider" in argument for argument in left)
    return [*left, "-o", f"cache_dir=.pytest_cache/{cache}"] if cached else left


def _environment(name: str, share: str, *, url: str, folder: Path) -> dict[str, str]:
    env = {
        **os.environ,
        CHILD: name,
        SHARE: share,
        COUNTS: str(folder / f"{name}-{share}.json"),
        "DJANGO_ENV": "test",
        "DATABASE_URL": url,
        # Faults are judged by the keep-alive: short, so that the tests are.
        "FALCON_SERVER_KEEP_ALIVE_SECONDS": "2",
        # Playwright runs an event loop in the thread that uses the ORM.
        "DJANGO_ALLOW_ASYNC_UNSAFE": "true",
    }
    # Tests start a hundred processes: compiled once, each starts in half the time.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
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
