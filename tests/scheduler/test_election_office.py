"""In office: until when a master believes itself, how it writes, and how it goes."""

import logging
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import (
    DatabaseError,
    InternalError,
    OperationalError,
    connection,
    transaction,
)

from audit import clock
from scheduler import election as module
from scheduler import sql
from scheduler.election import Election
from scheduler.exceptions import NotMaster, Unsure
from scheduler.look import look
from scheduler.models import BootstrapStep, MasterLease
from tests import databases
from tests.scheduler.electing import events, expire, somebody
from tests.waiting import wait_until
from workqueue.node import Me

postgresql = pytest.mark.postgresql


# --- fencing


def test_a_master_fences_itself_a_beat_before_its_lease_ends(
    master: Election, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.KEEP_ALIVE = timedelta(seconds=25)
    confirmed = master._term.confirmed  # type: ignore[union-attr]
    for age, may in ((14.9, True), (15.1, False)):
        monkeypatch.setattr(clock, "steady", lambda age=age: confirmed + age)
        assert master.may_act() is may
    with pytest.raises(Unsure), master.acting():
        raise AssertionError("it acted")


def test_the_fence_counts_from_before_the_request_was_sent(
    master: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([100.0, 109.0])
    monkeypatch.setattr(clock, "steady", lambda: next(times, 109.0))
    master.renew()
    assert master._term is not None
    assert master._term.confirmed == 100.0


# --- acting


def test_a_lease_that_cannot_be_held_is_told_with_the_reason(
    master: Election, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def read_only(**_: Any) -> None:
        raise InternalError("cannot execute SELECT FOR KEY SHARE in a replica")

    monkeypatch.setattr(module, "_hold_lease", read_only)
    caplog.set_level(logging.WARNING, "scheduler.election")
    with pytest.raises(Unsure), master.acting():
        raise AssertionError("it acted")
    assert (
        "the lease could not be held term=1: cannot execute SELECT FOR KEY SHARE in a replica"
        in caplog.text
    )


def test_what_the_master_writes_is_written(master: Election) -> None:
    with master.acting() as term:
        BootstrapStep.objects.create(name="x", applied_at=clock.now(), term=term)
    assert BootstrapStep.objects.get().term == 1


def test_a_deposed_master_writes_nothing_although_it_believes(
    master: Election, rival: Election
) -> None:
    """It froze, somebody else was elected, it woke up and had not renewed yet."""
    expire()
    assert rival.take()
    assert master.may_act()
    with pytest.raises(NotMaster), master.acting():
        raise AssertionError("it acted")
    assert master.term is None
    assert len(events("deposed")) == 1


def test_the_second_term_of_the_same_process_is_not_its_first(
    election: Election, rival: Election
) -> None:
    assert election.take()
    stale = Election(me=election._me)
    stale._begin(1, sent=clock.steady(), known=True)
    expire()
    assert rival.take()
    rival.resign(text="again")
    assert election.take()
    with pytest.raises(NotMaster), stale.acting():
        raise AssertionError("it acted")


@postgresql
def test_the_masters_transactions_have_their_timeouts(master: Election) -> None:
    with master.acting(), connection.cursor() as cursor:
        found = {}
        for name in (
            "lock_timeout",
            "statement_timeout",
            "idle_in_transaction_session_timeout",
        ):
            cursor.execute(f"SHOW {name}")
            found[name] = cursor.fetchone()[0]
    assert found == {
        "lock_timeout": "2s",
        "statement_timeout": "10s",
        "idle_in_transaction_session_timeout": "3s",
    }
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone()[0] == "0"  # SET LOCAL: nothing is left on the session


@postgresql
def test_the_lease_is_locked_before_anything_is_written(master: Election) -> None:
    with transaction.atomic(), connection.execute_wrapper(_recorded := _Recorder()):
        pass
    with connection.execute_wrapper(_recorded), master.acting():
        BootstrapStep.objects.create(name="x", applied_at=clock.now(), term=1)
    statements = [
        text for text in _recorded.statements if not text.startswith("SET LOCAL")
    ]
    assert statements[0] == sql.HOLD_LEASE
    assert statements[0].endswith("FOR KEY SHARE")


class _Recorder:
    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(
        self, execute: Any, text: str, params: Any, many: bool, context: Any
    ) -> Any:
        self.statements.append(text)
        return execute(text, params, many, context)


@postgresql
def test_a_master_frozen_inside_a_transaction_is_cut_off_by_the_server(
    master: Election,
) -> None:
    def freeze_and_write() -> None:
        with master.acting():
            _until_gone(connection.connection.info.backend_pid)
            BootstrapStep.objects.create(name="x", applied_at=clock.now(), term=1)

    with pytest.raises(DatabaseError):
        freeze_and_write()
    connection.close()
    assert not BootstrapStep.objects.exists()


def _until_gone(backend: int) -> None:
    question = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    with psycopg.connect(databases.url(), autocommit=True) as session:
        wait_until(
            lambda: not session.execute(question, [backend]).fetchone(),
            within=20,
            what="the end of the transaction that stood idle",
        )


# --- resigning


def test_resigning_frees_the_lease_and_keeps_the_name(master: Election, me: Me) -> None:
    assert master.resign(text="told to stop")
    lease = look().lease
    assert (lease.free, lease.holder, lease.node, lease.term) == (
        True,
        None,
        me.name,
        1,
    )
    assert [told.text for told in events("resigned")] == ["told to stop"]
    assert not master.may_act()
    assert not master.resign(text="once more")


def test_a_deposed_master_cannot_give_away_what_is_another_ones(
    master: Election, rival: Election
) -> None:
    expire()
    assert rival.take()
    assert not master.resign(text="told to stop")
    assert look().lease.holder == rival._me.id


@postgresql
def test_resigning_notifies_the_servers(master: Election) -> None:
    with psycopg.connect(databases.url(), autocommit=True) as session:
        session.execute(f"LISTEN {sql.CHANNEL}")
        master.resign(text="told to stop")
        assert next(session.notifies(timeout=5, stop_after=1), None) is not None


def test_a_master_whose_ticker_made_no_pass_for_30_s_resigns(
    master: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = clock.steady()
    master.passed()
    monkeypatch.setattr(clock, "steady", lambda: begun + 29)
    master.watch()
    assert master.term == 1
    monkeypatch.setattr(clock, "steady", lambda: begun + 31)
    master.watch()
    assert master.term is None
    assert look().lease.free
    assert "made no pass for 31 s" in events("resigned")[0].text


@postgresql
def test_a_stuck_tick_cannot_keep_its_master_in_office(
    master: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = clock.steady()
    monkeypatch.setattr(clock, "steady", lambda: begun + 31)
    stuck = somebody("SELECT 1 FROM scheduler_masterlease FOR KEY SHARE")
    with stuck, pytest.raises(OperationalError):
        master.watch()
    # Resigning in order failed, but nothing renews it any more.
    assert master.term is None
    before = MasterLease.objects.get().expires_at
    master.renew()
    assert MasterLease.objects.get().expires_at == before
