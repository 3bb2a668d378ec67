"""The election: one master, terms that only grow, and what a process may believe."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import (
    DatabaseError,
    OperationalError,
    connection,
    connections,
    transaction,
)

from audit import clock
from audit.models import NodeEvent
from scheduler import election as module
from scheduler import sql
from scheduler.election import Election
from scheduler.exceptions import NotMaster, Unsure
from scheduler.look import look
from scheduler.models import BootstrapStep, MasterLease
from tests import databases
from tests.waiting import wait_until
from workqueue import node
from workqueue.node import Me

postgresql = pytest.mark.postgresql


@pytest.fixture
def rival(transactional_db: None) -> Election:
    """Another process with the same host name and the same pid."""
    return Election(me=node.register(kind="server", report={}))


@contextmanager
def somebody(statement: str, *params: Any) -> Iterator[psycopg.Connection[Any]]:
    """Another session that has run a statement and not ended its transaction."""
    with psycopg.connect(databases.url()) as session:
        session.execute(statement, params)
        yield session
        session.rollback()


def expire() -> None:
    MasterLease.objects.update(expires_at=clock.earlier(timedelta(seconds=1)))


def events(type: str) -> list[NodeEvent]:
    return list(NodeEvent.objects.filter(type=type).order_by("id"))


# --- taking


def test_the_first_server_becomes_master_with_term_one(
    election: Election, me: Me
) -> None:
    assert election.take()
    lease = MasterLease.objects.get()
    assert (lease.holder, lease.node, lease.term) == (me.id, me.name, 1)
    assert election.term == 1
    assert election.may_act()
    [told] = events("elected")
    assert (told.node_id, told.term) == (me.id, 1)


def test_a_held_lease_cannot_be_taken(master: Election, rival: Election) -> None:
    assert not rival.take()
    assert rival.term is None
    assert MasterLease.objects.get().term == 1


def test_two_processes_with_the_same_host_name_and_pid_are_two(
    me: Me, master: Election, rival: Election
) -> None:
    assert rival._me.name == me.name
    assert rival._me.id != me.id
    rival._begin(1, sent=clock.steady(), known=True)  # what it would wrongly believe
    rival.renew()
    assert rival.term is None
    with pytest.raises(NotMaster), rival.acting():
        raise AssertionError("it acted")


def test_an_expired_lease_is_taken_with_a_new_term(
    master: Election, rival: Election
) -> None:
    expire()
    assert rival.take()
    assert rival.term == 2
    assert "had not renewed its lease, term" in events("elected")[-1].text


def test_a_term_never_shrinks_nor_repeats(election: Election, rival: Election) -> None:
    terms = []
    for one in (election, rival) * 5:
        assert one.take()
        terms.append(one.term)
        one.resign(text="the next one's turn")
    assert terms == list(range(1, 11))


def test_of_many_that_stand_at_once_one_is_elected(transactional_db: None) -> None:
    elections = [Election(me=node.register(kind="server", report={})) for _ in range(4)]
    barrier = threading.Barrier(len(elections))
    won: list[bool] = []

    def stand(one: Election) -> None:
        barrier.wait()
        won.append(one.take())
        connections.close_all()

    threads = [threading.Thread(target=stand, args=(one,)) for one in elections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(won) == [False, False, False, True]
    assert MasterLease.objects.get().term == 1


@postgresql
def test_a_take_over_gives_up_after_a_second_and_looks_again(
    election: Election,
) -> None:
    with somebody("SELECT 1 FROM scheduler_masterlease FOR KEY SHARE"):
        began = time.monotonic()
        assert not election.take()
        assert 0.9 < time.monotonic() - began < 3
    assert election.take()


@postgresql
def test_a_take_over_waits_for_what_the_old_master_is_writing(
    master: Election, rival: Election
) -> None:
    """And a plain UPDATE, or FOR NO KEY UPDATE, would slip past: that trap is real."""
    with master.acting():
        expire_elsewhere = threading.Thread(target=_expire_in_a_thread)
        expire_elsewhere.start()
        expire_elsewhere.join(5)
        taken: list[bool] = []
        thread = threading.Thread(
            target=lambda: (taken.append(rival.take()), connections.close_all())
        )
        thread.start()
        thread.join(5)
        assert taken == [False]
        with psycopg.connect(databases.url()) as session:
            session.execute("SET LOCAL lock_timeout = '200ms'")
            session.execute("SELECT 1 FROM scheduler_masterlease FOR NO KEY UPDATE")
            session.rollback()
    assert rival.take()


def _expire_in_a_thread() -> None:
    """A plain UPDATE passes KEY SHARE, as the master's own renewal must."""
    expire()
    connections.close_all()


# --- renewing


def test_renewing_moves_the_expiry_and_nothing_else(
    master: Election, settings: Any
) -> None:
    before = MasterLease.objects.get()
    MasterLease.objects.update(expires_at=clock.later(1))
    master.renew()
    after = MasterLease.objects.get()
    assert after.expires_at - after.renewed_at > settings.KEEP_ALIVE - timedelta(
        seconds=1
    )
    assert (after.term, after.holder, after.since) == (
        before.term,
        before.holder,
        before.since,
    )


def test_a_renewal_that_matches_no_row_ends_the_term(
    master: Election, rival: Election
) -> None:
    expire()
    assert rival.take()
    master.renew()
    assert master.term is None
    assert not master.may_act()
    assert [told.term for told in events("deposed")] == [1]
    assert rival.may_act()


def test_an_error_while_renewing_means_unknown_until_a_renewal_succeeds(
    master: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(module, "_wait_briefly", away)
        with pytest.raises(OperationalError):
            master.renew()
    assert master.term == 1
    assert not master.may_act()
    with pytest.raises(Unsure), master.acting():
        raise AssertionError("it acted")
    master.renew()
    assert master.may_act()


def test_a_lease_that_expired_and_nobody_took_can_be_renewed(master: Election) -> None:
    expire()
    with pytest.raises(Unsure), master.acting():
        raise AssertionError("it acted")
    assert not master.may_act()
    master.renew()
    assert master.may_act()
    with master.acting() as term:
        assert term == 1


def test_a_standby_renews_nothing(
    election: Election, django_assert_num_queries: Callable[..., Any]
) -> None:
    with django_assert_num_queries(0):
        election.renew()


@postgresql
def test_renewing_passes_a_tick_in_progress(master: Election) -> None:
    """FOR SHARE would block the renewal without bound: that trap is real."""
    with master.acting():
        renewed: list[float] = []

        def renew() -> None:
            began = time.monotonic()
            master.renew()
            renewed.append(time.monotonic() - began)
            connections.close_all()

        thread = threading.Thread(target=renew)
        thread.start()
        thread.join(5)
        assert renewed
        assert renewed[0] < 0.5
    others = somebody("SELECT 1 FROM scheduler_masterlease FOR SHARE")
    with others, pytest.raises(OperationalError):
        master.renew()


@postgresql
def test_a_renewal_never_waits_longer_than_a_second_for_the_row(
    master: Election,
) -> None:
    with somebody("SELECT 1 FROM scheduler_masterlease FOR UPDATE"):
        began = time.monotonic()
        with pytest.raises(OperationalError):
            master.renew()
        assert time.monotonic() - began < 3


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


# --- what a look tells


def test_a_take_over_whose_reply_was_lost_is_found_by_a_look(
    election: Election, me: Me
) -> None:
    assert election.take()
    forgetful = Election(me=me)
    forgetful.follow(look().lease)
    assert forgetful.term == 1
    assert not forgetful.may_act()  # not before a renewal has confirmed it
    forgetful.renew()
    assert forgetful.may_act()


def test_a_look_that_sees_another_master_ends_the_term(
    master: Election, rival: Election
) -> None:
    expire()
    assert rival.take()
    master.follow(look().lease)
    assert master.term is None


def test_a_renewal_of_an_old_term_that_comes_late_ends_no_new_one(
    master: Election, rival: Election
) -> None:
    master._change(0, known=False)
    master._over(0)
    assert master.may_act()
