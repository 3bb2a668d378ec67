"""The connection budget: every pool counted, against what the server leaves."""

from typing import Any

import pytest
from django.db import connection

from jobworker import connection_budget as budget
from tests import factories
from tests.jobworker.screening import worker
from workqueue.models import Node

pytestmark = pytest.mark.django_db


def of(maximum: int | None, **values: Any) -> budget.Budget:
    found = budget.look()
    return budget.Budget(
        processes=found.processes, wishes=found.wishes, maximum=maximum, opened=7
    )


def test_every_live_process_is_counted_with_what_stands_outside_its_pool():
    worker()
    for pid in (1, 2):
        factories.node(
            "web", pid=pid, report={"connections": {"pool": 8, "outside": 1}}
        )
    factories.node("server", report={})  # has not said: what its kind needs
    factories.node("worker", status=Node.Status.STOPPED)
    found = of(50)
    assert [(one.word, one.pool, one.outside) for one in found.processes] == [
        ("job worker", 10, 3),
        ("scheduler", 4, 3),
        ("web", 8, 1),
        ("web", 8, 1),
    ]
    assert (found.wanted, found.limit, found.spare) == (38, 30, -8)
    assert (found.state, found.missing, found.web, found.jobworkers) == (
        "over",
        8,
        2,
        1,
    )


@pytest.mark.parametrize(
    ("maximum", "state"),
    [(100, ""), (34, "near"), (33, "near"), (32, "over"), (None, "")],
)
def test_it_warns_before_the_limit_is_passed(maximum: int | None, state: str):
    worker()  # 13
    assert of(maximum).state == state


def test_what_a_worker_needs_to_run_what_was_asked_is_reckoned():
    worker(caps={"heavy": 2, "medium": 1, "light": 3, "total": 12})
    worker(host="app-2")
    (wish,) = of(100).wishes
    assert (wish.host, wish.jobs, wish.used, wish.pool, wish.more) == (
        "app-1",
        12,
        3,
        28,
        18,
    )


def test_the_references_example_comes_out():
    """8 x 2 + 14 = 30: connections moved to the job worker cost nothing in total."""
    for pid in (1, 2):
        factories.node(
            "web", pid=pid, report={"connections": {"pool": 8, "outside": 0}}
        )
    caps = {"heavy": 2, "medium": 1, "light": 3, "total": 5}
    worker(pool=14, caps=caps, connections={"pool": 14, "outside": 0})
    found = of(50)
    assert (found.wanted, found.limit, found.wishes) == (30, 30, ())


def test_the_server_is_asked_where_there_is_one():
    found = budget.look()
    if connection.vendor == "postgresql":
        assert found.maximum is not None
        assert found.opened >= 1
    else:
        assert (found.maximum, found.state) == (None, "")
