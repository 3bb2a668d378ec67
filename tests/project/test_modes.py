"""FALCON_MODE: which processes there are, who migrates, who has a port."""

import pytest

from project.modes import JOBWORKER, MODES, SCHEDULER, WEB, WORKER
from workqueue.models import Node

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("mode", "processes", "migrates", "serves", "admin"),
    [
        ("all", (WEB, SCHEDULER, WORKER, JOBWORKER), True, True, True),
        ("api", (WEB, SCHEDULER), True, True, False),
        ("web", (WEB,), False, True, True),
        ("worker", (WORKER,), False, False, False),
        ("jobworker", (JOBWORKER,), False, False, False),
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
    assert [p.name for p in MODES["all"].processes if p.last] == ["web"]


def test_who_has_no_port_is_asked_for_by_its_kind_in_the_table_of_processes():
    for name, mode in MODES.items():
        if not mode.serves:
            assert [p.name for p in mode.processes] == [Node.Kind(name)]
