"""The election: one master, terms that only grow, and what a process may believe."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import (
    OperationalError,
    connections,
)

from audit import clock
from scheduler import election as module
from scheduler.election import Election
from scheduler.exceptions import NotMaster, Unsure
from scheduler.look import look
from scheduler.models import MasterLease
from tests import databases
from tests.scheduler.electing import events, expire, somebody
from workqueue import node
from workqueue.node import Me

postgresql = pytest.mark.postgresql


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
