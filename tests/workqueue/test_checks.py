"""Each check has an id for ever, finds its mistake, and says what to type."""

from datetime import timedelta
from typing import Any

import pytest

from workqueue import checks
from workqueue.registry import Handler

TABLE = (Handler(key="a.b", title="A", purpose="p", cadence=None),)
TWICE = (*TABLE, *TABLE)
NO_PATH = (Handler(key="A B", title="A", purpose="p", cadence=None),)


def ids(found: list[Any]) -> list[str]:
    assert all(one.hint for one in found)
    return [one.id for one in found]


def test_the_project_as_it_stands_passes() -> None:
    for check in (
        checks.check_timetable,
        checks.check_keep_alive,
        checks.check_middleware,
        checks.check_pool,
    ):
        assert check() == []


@pytest.mark.parametrize(
    "path",
    [
        "nowhere.TABLE",
        "tests.workqueue.test_checks.MISSING",
        "workqueue.checks.KEEP_ALIVE.x",
    ],
)
def test_e001_a_timetable_that_is_not_there(settings: Any, path: str) -> None:
    settings.WORKQUEUE_HANDLERS = path
    assert ids(checks.check_timetable()) == ["workqueue.E001"]


@pytest.mark.parametrize("table", [TWICE, NO_PATH], ids=["twice", "no path"])
def test_e002_a_key_twice_or_no_path(
    monkeypatch: pytest.MonkeyPatch, table: Any
) -> None:
    monkeypatch.setattr(checks, "import_string", lambda _: table)
    assert ids(checks.check_timetable()) == ["workqueue.E002"]


@pytest.mark.parametrize(
    ("seconds", "found"), [(1, 1), (2, 0), (25, 0), (600, 0), (601, 1)]
)
def test_e003_a_keep_alive_out_of_bounds(
    settings: Any, seconds: int, found: int
) -> None:
    settings.KEEP_ALIVE = timedelta(seconds=seconds)
    assert ids(checks.check_keep_alive()) == ["workqueue.E003"] * found


@pytest.mark.parametrize(
    "names",
    [
        [],
        [checks.AUTHENTICATION],
        [checks.SCOPE],
        [checks.SCOPE, checks.AUTHENTICATION],
    ],
)
def test_e004_lists_that_nothing_scopes(settings: Any, names: list[str]) -> None:
    settings.MIDDLEWARE = names
    assert ids(checks.check_middleware()) == ["workqueue.E004"]


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("size", "over", "found"),
    [(None, None, 0), (3, 1, 1), (4, None, 1), (3, 2, 0), (1, 0, 1)],
)
def test_w001_a_pool_that_serves_one_item(
    settings: Any, size: Any, over: Any, found: int
) -> None:
    settings.DB_POOL_SIZE, settings.DB_MAX_OVERFLOW = size, over
    assert ids(checks.check_pool()) == ["workqueue.W001"] * found
