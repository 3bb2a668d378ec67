"""Daily acts: what is forgotten, and what never."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock, ledger
from scheduler import daily as module
from scheduler.daily import daily, prune
from scheduler.election import Election
from scheduler.exceptions import NotMaster
from scheduler.models import MasterLease, Tick
from tests import factories
from workqueue import node
from workqueue.models import Node


def make_tick(handler: str, *, days: float, **values: Any) -> Tick:
    at = clock.now() - timedelta(days=days)
    return Tick.objects.create(
        handler=handler, trigger="slot", slot=at, at=at, term=1, **values
    )


def test_ticks_are_kept_seven_days_and_the_newest_of_each_row_for_ever(
    master: Election,
) -> None:
    make_tick("often", days=8)
    kept = [make_tick("often", days=6.9), make_tick("often", days=0)]
    make_tick("yearly", days=700)
    kept.append(make_tick("yearly", days=300))
    prune(master)
    assert set(Tick.objects.values_list("id", flat=True)) == {tick.pk for tick in kept}


def test_many_ticks_go_in_batches(
    master: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    for n in range(8):
        make_tick("often", days=8 + n)
    make_tick("often", days=1)
    assert prune(master) == 8


def test_nodes_that_stopped_are_kept_thirty_days_and_live_ones_for_ever(
    master: Election,
) -> None:
    now = clock.now()
    gone = factories.node(status="stopped", heartbeat_at=now - timedelta(days=31))
    kept = factories.node(status="stopped", heartbeat_at=now - timedelta(days=29))
    alive = factories.node(heartbeat_at=now - timedelta(days=31))
    prune(master)
    ids = set(Node.objects.values_list("id", flat=True))
    assert gone.id not in ids
    assert {kept.id, alive.id} <= ids


def test_only_the_master_forgets(master: Election) -> None:
    make_tick("often", days=8)
    make_tick("often", days=1)
    MasterLease.objects.update(expires_at=clock.earlier(timedelta(seconds=1)))
    assert Election(me=node.register(kind="server", report={})).take()
    with pytest.raises(NotMaster):
        daily(master)
    assert Tick.objects.count() == 2


def test_partitions_of_the_coming_months_are_made(
    master: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        ledger,
        "make_partitions",
        lambda now: asked.append(now) or ["audit_run_2027_03"],
    )
    daily(master)
    assert len(asked) == 1


def test_what_fails_has_another_day_and_stops_nothing(
    master: Election, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(now: Any) -> list[str]:
        raise RuntimeError("no room")

    monkeypatch.setattr(ledger, "make_partitions", fail)
    make_tick("often", days=8)
    make_tick("often", days=1)
    daily(master)
    assert Tick.objects.count() == 1
    assert "daily act failed" in caplog.text
