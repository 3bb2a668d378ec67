"""Claims of due rows."""

import threading
from datetime import timedelta

import pytest
from django.db import connection

from audit import clock
from scheduler.handlers.notifications import claim, sql
from scheduler.handlers.notifications.models import Channel, Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import due, email

pytestmark = pytest.mark.django_db


def test_a_claim_takes_the_oldest_due_rows_and_no_others() -> None:
    channel = email(factories.tenant())
    now = clock.now()
    rows = [
        due(channel, next_attempt_at=now - timedelta(seconds=age)) for age in (1, 3, 2)
    ]
    later = due(channel, next_attempt_at=now + timedelta(minutes=1))
    me = clock.uuid7()

    taken = claim.take(channel, claim_id=me, limit=2)

    assert {row.pk for row in taken} == {rows[1].pk, rows[2].pk}
    for row in taken:
        assert (row.state, row.attempts, row.claim_id) == ("sending", 1, me)
        assert row.claimed_until == row.next_attempt_at
        assert row.claimed_until is not None
        assert timedelta(seconds=110) < row.claimed_until - now < timedelta(seconds=130)
    later.refresh_from_db()
    assert later.state == "pending"


def test_a_row_that_is_being_sent_is_claimable_again_when_its_claim_has_ended() -> None:
    channel = email(factories.tenant())
    due(channel)
    first, second = clock.uuid7(), clock.uuid7()
    [row] = claim.take(channel, claim_id=first, limit=10)
    assert claim.take(channel, claim_id=second, limit=10) == []

    with clock.at(clock.now() + sql.LEASE + timedelta(seconds=1)):
        [again] = claim.take(channel, claim_id=second, limit=10)

    assert (again.pk, again.attempts) == (row.pk, 2)
    assert not row.sent("late")  # the first has lost it
    again.refresh_from_db()
    assert again.state == "sending"


def test_a_channel_paused_meanwhile_gives_nothing() -> None:
    channel = email(factories.tenant())
    due(channel)
    channel.pause(timedelta(minutes=1))
    assert claim.take(channel, claim_id=clock.uuid7(), limit=10) == []


def test_a_row_that_is_held_is_not_taken_while_its_message_may_be_on_its_way() -> None:
    channel = email(factories.tenant())
    due(channel)
    due(channel)
    me = clock.uuid7()
    mine, lost = claim.take(channel, claim_id=me, limit=10)
    Notification.objects.filter(pk=lost.pk).update(claim_id=clock.uuid7())

    assert claim.hold(mine, claim_id=me)
    assert not claim.hold(lost, claim_id=me)

    with clock.at(clock.now() + sql.LEASE + timedelta(seconds=1)):
        taken = claim.take(channel, claim_id=clock.uuid7(), limit=10)
    assert [row.pk for row in taken] == [lost.pk]


def test_what_is_handed_back_counts_no_attempt() -> None:
    channel = email(factories.tenant())
    due(channel, attempts=3)
    me = clock.uuid7()
    rows = claim.take(channel, claim_id=me, limit=10)

    claim.hand_back(rows, claim_id=me, until=None)

    row = Notification.objects.get()
    assert (row.state, row.attempts, row.claimed_until) == ("pending", 3, None)
    assert len(claim.take(channel, claim_id=me, limit=10)) == 1


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_claims_at_the_same_time_share_the_rows_and_none_is_claimed_twice() -> None:
    channel = email(factories.tenant())
    for _ in range(60):
        due(channel)
    taken: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait(10)
        try:
            while rows := claim.take(channel, claim_id=clock.uuid7(), limit=5):
                taken.extend(row.pk for row in rows)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(taken) == 60
    assert len(set(taken)) == 60


def test_the_claim_walks_its_index_among_2500_live_and_2500_sent_rows() -> None:
    acme = factories.tenant()
    busy, quiet = email(acme, name="busy"), email(acme, name="quiet")
    now = clock.now()
    common = {"tenant": acme, "recipient": "anna@example.com", "created_at": now}
    sent = {
        **common,
        "channel": quiet,
        "state": "sent",
        "sent_at": now,
        "finished_at": now,
    }
    waits = {**common, "channel": busy, "next_attempt_at": now - timedelta(seconds=1)}
    Notification.objects.bulk_create(
        Notification(**sent, dedupe_key=f"s{n}") for n in range(2_500)
    )
    Notification.objects.bulk_create(
        Notification(**waits, dedupe_key=f"w{n}") for n in range(2_500)
    )
    due(quiet)

    for _ in range(2):  # without statistics of its own, and with them
        plan = explained(quiet)
        assert "notification_due_by_channel" in plan, plan
        assert "Seq Scan on notifications_notification" not in plan, plan
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    assert len(claim.take(quiet, claim_id=clock.uuid7(), limit=200)) == 1


def explained(channel: Channel) -> str:
    postgresql = connection.vendor == "postgresql"
    statement = sql.CLAIM_ON_POSTGRESQL if postgresql else sql.CLAIM_ON_SQLITE
    params = claim._params(channel, claim_id=clock.uuid7(), limit=200)
    explain = "EXPLAIN " if postgresql else "EXPLAIN QUERY PLAN "
    with connection.cursor() as cursor:
        cursor.execute(explain + statement, params)
        return "\n".join(str(row) for row in cursor.fetchall())
