"""What a new installation still lacks, step by step."""

from datetime import timedelta

import pytest

from audit import clock
from project import first_run
from scheduler import servers
from scheduler.models import MasterLease
from tests import factories

pytestmark = pytest.mark.django_db


def steps() -> first_run.FirstRun:
    now = clock.now()
    master = servers.mastership(now)
    return first_run.steps(master, servers.processes(master, now=now), now=now)


def done() -> list[bool]:
    return [step.at is not None for step in steps().steps]


def test_an_installation_that_was_only_migrated_waits_for_a_server():
    found = steps()
    assert found.done == 1
    assert found.now is not None
    assert found.now.title == "No server node has reported yet"
    assert found.sentence == (
        "It is ready for work when a server node has reported"
        " and a worker has reported and a tenant exists."
    )


def test_each_step_is_done_when_its_thing_is_there():
    now = clock.now()
    server = factories.node("server", host="localhost")
    assert done() == [True, True, False, False, False, False]
    MasterLease.objects.update_or_create(
        id=1,
        defaults={
            "holder": server.id,
            "node": str(server),
            "term": 1,
            "since": now,
            "expires_at": now + timedelta(minutes=1),
        },
    )
    assert done() == [True, True, True, False, False, False]
    assert steps().steps[2].title == "Master elected: localhost, term 1"
    factories.node("worker")
    factories.tenant("acme")
    assert done() == [True, True, True, True, True, False]
    assert steps().sentence == "All is there: the first run comes with the next slot."


def test_the_next_slot_is_said_and_that_its_item_waits_for_a_worker():
    last = steps().steps[-1]
    assert last.due is not None
    assert "its item waits until a worker has reported" in last.help
    factories.node("worker")
    assert "waits" not in steps().steps[-1].help
