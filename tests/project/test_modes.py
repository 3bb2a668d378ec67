"""FALCON_MODE: which processes there are, who migrates, who has a port."""

import pytest

from project.modes import MODES, SCHEDULER, WEB, WORKER

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("mode", "processes", "migrates", "serves", "admin"),
    [
        ("all", (WEB, SCHEDULER, WORKER), True, True, True),
        ("api", (WEB, SCHEDULER), True, True, False),
        ("web", (WEB,), False, True, True),
        ("worker", (WORKER,), False, False, False),
    ],
)
def test_a_mode(mode, processes, migrates, serves, admin):
    found = MODES[mode]
    assert (found.processes, found.migrates, found.serves, found.admin) == (
        processes,
        migrates,
        serves,
        admin,
    )


def test_only_the_web_process_is_stopped_last():
    assert [p.name for p in (WEB, SCHEDULER, WORKER) if p.last] == ["web"]
