"""docs/settings.md names everything that can be configured."""

import pytest

from jobworker import caps
from project.document import document
from project.environment import VARIABLES
from workqueue.policy import WORKER_NODE_CONFIGURATION

pytestmark = pytest.mark.once


def test_every_variable_and_every_live_key_has_a_row_with_its_default():
    rows = {
        line.split("|")[1].strip(" `"): line
        for line in document().splitlines()
        if line.startswith("| `")
    }
    keys = [*WORKER_NODE_CONFIGURATION.keys, *caps.DECLARATION.keys]
    assert set(rows) == {one.name for one in (*VARIABLES, *keys)}
    assert "0 to 3600" in rows["WORKER_DRAIN_TIMEOUT_S"]
    assert "**required** in production" in rows["SECRET_KEY"]
    assert "`10`" in rows["WORKER_CONCURRENCY"]


def test_every_row_has_as_many_cells_as_its_head():
    for line in document().splitlines():
        if line.startswith("| `"):
            assert line.count("|") in (7, 6), line
