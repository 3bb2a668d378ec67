from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from audit import clock
from scheduler.handlers.instance.measure import measure
from scheduler.models import MasterLease
from tests import factories
from workqueue.models import Node

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def test_the_leader_is_the_random_id_of_the_process_that_holds_the_lease() -> None:
    node = factories.node(Node.Kind.SERVER)
    MasterLease.objects.update_or_create(
        id=1, defaults={"holder": node.id, "expires_at": NOW + timedelta(seconds=9)}
    )

    with clock.at(NOW):
        assert measure(now=NOW).leader == str(node.id)
    with clock.at(NOW + timedelta(seconds=10)):
        assert measure(now=NOW).leader is None


def test_processes_that_are_alive_are_counted_and_the_oldest_start_is_told() -> None:
    factories.node(started_at=NOW - timedelta(days=9), status=Node.Status.STOPPED)
    factories.node(started_at=NOW - timedelta(days=2))
    factories.node(Node.Kind.SERVER, started_at=NOW - timedelta(days=1))

    found = measure(now=NOW)

    assert found.replicas_alive == 2
    assert found.started_at == "2026-11-27T12:00:00+00:00"


def test_an_empty_installation_reports_nothing_waiting_and_no_master() -> None:
    found = measure(now=NOW)

    assert (found.queue_depth, found.oldest_pending_s, found.failed_24h) == (0, 0, 0)
    assert (found.leader, found.started_at, found.replicas_alive) == (None, None, 0)


def test_the_database_is_named_with_its_version() -> None:
    name, _, version = measure(now=NOW).db.partition(" ")

    assert name == connection.vendor
    assert version[0].isdecimal()
