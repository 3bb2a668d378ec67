"""Fixtures for all tests, and the way to run them on both databases."""

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import TransactionTestCase
from hypothesis import settings as hypothesis_settings

from audit import clock, mask
from tests import databases, launcher
from tests.processes import Process, run_manage
from workqueue import live

ROOT = Path(__file__).resolve().parents[1]

# Time is what the machine makes of it; a slow example is no failure.
hypothesis_settings.register_profile("millrace", deadline=None, max_examples=50)
hypothesis_settings.load_profile("millrace")


# --- both databases


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--db",
        choices=["both", *launcher.DATABASES],
        default="both",
        help="the database to run on; both: one after the other reports",
    )


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """The process that was started only starts others, a database each."""
    if launcher.is_child() or config.option.collectonly:
        return None
    if config.option.help or config.option.version:
        return None
    return launcher.launch(
        arguments=list(config.invocation_params.args),
        directory=config.invocation_params.dir,
        wanted=config.option.db,
        whole=config.args_source is not pytest.Config.ArgsSource.ARGS,
    )


def pytest_configure() -> None:
    if launcher.is_child():
        launcher.tidy_up_on_sigterm()


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what belongs to the other database, or was run on it; skip what is for hours."""
    if launcher.is_child():
        out = [item for item in items if launcher.belongs_elsewhere(item)]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in set(out)]
    if "MILLRACE_SOAK_MINUTES" not in os.environ:
        by_hand = pytest.mark.skip(reason="full size runs by hand: make soak")
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(by_hand)


def pytest_collection_finish() -> None:
    """Garbage is not looked for among what was imported and collected: it all stays."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    launcher.report_counts(terminalreporter.stats)


# --- rows


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """A database for this process's share; on SQLite a file, since processes share it."""
    databases.name_the_test_database(launcher.share())


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Remember the rows that migrations made; they must be back after a wipe."""
    with django_db_blocker.unblock():
        databases.remember_rows_of_migrations()
    # A flush would take them away, and costs five times as much.
    TransactionTestCase._fixture_teardown = databases.wipe  # type: ignore[method-assign]
    yield
    with django_db_blocker.unblock():
        databases.end_other_connections()


@pytest.fixture(autouse=True)
def nothing_of_the_test_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that it saved would be believed for five seconds, its clock for good.

    And a password that it used would be masked in what this one writes.
    """
    live.forget()
    monkeypatch.setattr(clock, "_anchor", None)
    mask._recent.clear()
    mask._size = 0
    while mask._gone:
        mask._forget(mask._gone.popleft())


# --- real processes


@pytest.fixture
def process_env(transactional_db: None, tmp_path: Path) -> dict[str, str]:
    """The environment of a process that works on the test's own (committed) rows."""
    return {
        **os.environ,
        "DATABASE_URL": databases.url(),
        "ARCHIVE_ROOT": str(tmp_path / "archive"),
        "JOB_ROOT": str(tmp_path / "jobs"),
    }


@pytest.fixture
def manage(process_env: dict[str, str]) -> Callable[..., Any]:
    """Run a command to its end: manage("leader", "--json", timeout=30, env={...})."""

    def run(
        *arguments: str, timeout: float = 60, env: dict[str, str] | None = None
    ) -> Any:
        return run_manage(
            arguments, env={**process_env, **(env or {})}, timeout=timeout
        )

    return run


@pytest.fixture
def spawn(
    process_env: dict[str, str], tmp_path: Path
) -> Iterator[Callable[..., Process]]:
    """Start a command that stays: spawn("runworker", env={...}). Ended with the test."""
    started: list[Process] = []

    def start(*arguments: str, env: dict[str, str] | None = None) -> Process:
        log = tmp_path / f"{len(started)}-{arguments[0]}.log"
        started.append(Process(arguments, env={**process_env, **(env or {})}, log=log))
        return started[-1]

    yield start
    for process in started:
        process.end()


# --- what may be absent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the reference and the data, beside the project."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared, which this test reads, is not here")
    return folder


@pytest.fixture(scope="session")
def browser_type_launch_args(
    browser_type_launch_args: dict[str, Any],
) -> dict[str, Any]:
    """The machine's Chromium; nothing is downloaded."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium is installed here; browser tests need one on PATH")
    return {
        **browser_type_launch_args,
        "executable_path": found,
        "args": [
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-software-rasterizer",
        ],
    }
