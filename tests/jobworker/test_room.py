"""One rule says whether a job may be claimed, and what is full where not."""

from typing import Any

import pytest

from jobworker.room import Room

pytestmark = pytest.mark.once


def room(**values: Any) -> Room:
    """An idle worker with the documented caps."""
    idle: dict[str, Any] = {
        "caps": {"heavy": 2, "medium": 1, "light": 3},
        "total": 3,
        "usable": 3,
        "threads": 25,
        "running": {},
        "awake": 0,
        "stuck": 0,
    }
    return Room(**{**idle, **values})


@pytest.mark.parametrize(
    ("taken", "full"),
    [
        ({}, ""),
        ({"running": {"light": 2}, "awake": 2}, ""),
        ({"caps": {"light": 0}}, "light"),
        ({"running": {"light": 3}, "total": 9, "usable": 9}, "light"),
        ({"running": {"light": 2, "heavy": 1}, "awake": 3}, "total"),
        ({"running": {"light": 2}, "total": 12, "usable": 2, "awake": 2}, "usable"),
        ({"running": {"light": 2}, "threads": 2}, "threads"),
        ({"running": {"light": 1}, "threads": 2, "stuck": 1}, "threads"),
    ],
)
def test_what_is_full_is_named(taken: dict[str, Any], full: str) -> None:
    assert room(**taken).full("light") == full


def test_jobs_asleep_count_among_the_total_and_take_nothing_of_the_pool() -> None:
    asleep = {"running": {"light": 2, "heavy": 1}, "awake": 0}
    assert room(**asleep).full("heavy") == "total"
    assert room(**asleep, total=12, usable=1).full("heavy") == ""
