"""The look: one statement for all that a server needs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from audit import clock
from scheduler.election import Election
from scheduler.exceptions import LeaseGone
from scheduler.look import look
from scheduler.models import MasterLease, Schedule
from tests import factories
from workqueue import live, pauses, policy
from workqueue.models import Pause
from workqueue.node import Me

NOW = datetime(2026, 11, 29, 14, 31, 58, 123456, tzinfo=UTC)


@pytest.fixture(autouse=True)
def fresh(transactional_db: None) -> None:
    live.forget()


def test_one_statement_reads_lease_settings_pauses_schedules_and_requests(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, who="ann", origin="command", why="")
    pauses.pause(
        scope=Pause.Scope.EVERYTHING, reason="upgrade", who="ann", origin="command"
    )
    Schedule.objects.create(
        key="plain",
        since=NOW,
        last_slot=NOW + timedelta(seconds=1),
        cadence="5m",
        run_requested_at=NOW,
        run_requested_by="ann",
        run_requested_why="100 % sure",
    )
    with django_assert_num_queries(1):
        seen = look()
    assert seen.live.policy.concurrency == 12
    assert [pause.reason for pause in seen.live.pauses] == ["upgrade"]
    schedule = seen.schedules["plain"]
    assert schedule.since == NOW
    assert schedule.last_slot == NOW + timedelta(seconds=1)
    assert schedule.cadence == "5m"
    assert (schedule.run_requested_at, schedule.run_requested_by) == (NOW, "ann")
    assert schedule.run_requested_why == "100 % sure"


def test_a_lease_that_nobody_holds_is_free() -> None:
    seen = look()
    assert seen.lease.free
    assert seen.lease.holder is None
    assert seen.lease.term == 0


def test_a_lease_is_free_from_the_instant_it_expires(
    election: Election, me: Me, settings: Any
) -> None:
    with clock.at(NOW):
        assert election.take()
        held = look().lease
    assert (held.free, held.holder, held.node, held.term) == (False, me.id, me.name, 1)
    assert held.since == NOW
    assert held.expires_at == NOW + settings.KEEP_ALIVE
    for offset, free in ((timedelta(microseconds=-1), False), (timedelta(), True)):
        with clock.at(NOW + settings.KEEP_ALIVE + offset):
            assert look().lease.free is free


def test_a_look_is_a_sample_of_the_databases_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples: list[datetime] = []
    monkeypatch.setattr(
        clock, "sample", lambda *, database, sent, received: samples.append(database)
    )
    seen = look()
    assert samples == [seen.now]
    assert abs(seen.now - clock.now()) < timedelta(seconds=2)


def test_a_look_takes_no_lock_and_opens_no_transaction() -> None:
    look()
    assert not connection.in_atomic_block
    if connection.vendor == "postgresql":
        assert connection.connection.info.transaction_status.name == "IDLE"


def test_an_empty_database_is_looked_at_too() -> None:
    factories.platform()
    assert look().schedules == {}


def test_a_lease_whose_row_is_gone_says_what_to_do() -> None:
    MasterLease.objects.all().delete()
    with pytest.raises(LeaseGone, match="Bring it back with id 1"):
        look()
