"""Why an item is not running: the first cause that holds it up, in a sentence."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from tests import factories, screens
from workqueue import live, pauses, policy, waiting
from workqueue.models import Node, Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh() -> Any:
    live.forget()
    yield
    live.forget()


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def worker(**report: Any) -> Node:
    said = {
        "slots": {"asked": 4, "used": 4},
        "in_flight": 0,
        "handlers": ["tests.noop"],
    }
    return factories.node(report={**said, **report})


def why(acme: Tenant, **values: Any) -> str:
    now = clock.now()
    return waiting.why(screens.pending(acme, **values), waiting.facts(now)).replace(
        "\u00a0", " "
    )


def test_it_is_said_that_no_worker_runs(acme: Tenant):
    assert "no worker process is running" in why(acme)
    factories.node(kind=Node.Kind.SERVER)
    worker(status=None).delete()
    assert "no worker process is running" in why(factories.tenant())


def test_it_is_said_that_no_worker_knows_the_handler(acme: Tenant):
    worker()
    assert "no running worker knows this handler" in why(
        acme, handler="retired.handler"
    )
    assert "next look of a worker, in 10 s at most" in why(acme)


def test_a_worker_that_has_not_said_what_it_knows_is_given_the_benefit_of_the_doubt(
    acme: Tenant,
):
    worker(handlers=None)
    assert "next look" in why(acme, handler="retired.handler")


def test_it_is_said_that_all_slots_are_busy(acme: Tenant):
    worker(in_flight=4)
    assert why(acme) == "Waits because all 4 slots of 1 worker are busy."


def test_it_is_said_when_a_failed_item_is_tried_again(acme: Tenant):
    worker()
    said = why(
        acme, not_before=clock.now() + timedelta(seconds=130), failures=1, attempts=1
    )
    assert said.startswith("Waits 2 min")
    assert "before it is tried again: attempt 1 failed" in said


def test_a_pause_is_said_with_its_reason(acme: Tenant):
    worker()
    pauses.pause(
        scope="tenant", tenant=acme, reason="moving", who="anna", origin="admin"
    )
    assert why(acme) == "Waits because tenant acme is paused without an end: “moving”."
    assert "next look" in why(factories.tenant())


def test_switched_off_comes_before_every_other_cause(acme: Tenant):
    policy.save(
        {"START_WORKERS_ON_MASTER": "off"}, who="anna", origin="admin", why="move"
    )
    live.forget()
    assert "START_WORKERS_ON_MASTER is off" in why(acme, handler="retired.handler")


def test_a_suspect_waits_to_run_alone(acme: Tenant):
    worker()
    assert "to run alone: 2 workers stopped while running it" in why(acme, recoveries=2)


def test_held_and_executing_items_say_where_they_are(acme: Tenant):
    facts = waiting.facts(clock.now())
    assert "Held: 3 workers stopped while running it. Release it" in waiting.why(
        screens.held(acme), facts
    )
    assert waiting.why(screens.executing(factories.tenant()), facts).startswith(
        "Executing on queue-1, 31, claim renewed"
    )


@pytest.mark.parametrize(
    "report",
    [
        {},
        [],
        "x",
        None,
        {"slots": 5},
        {"slots": {"used": "many"}, "in_flight": [1], "handlers": 3},
    ],
)
def test_no_report_breaks_the_page(acme: Tenant, report: Any):
    factories.node(report=report if report is not None else {})
    assert why(acme)
