"""Items -> one worker."""

import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from audit import clock
from tests import factories
from workqueue import sql
from workqueue.claim import (
    Claimed,
    Demand,
    Marks,
    claim,
    claim_suspect,
    suspect_due_since,
)
from workqueue.models import Node, Tenant, WorkItem


def demand(
    slow: dict[str, int] | None = None,
    fast: dict[str, int] | None = None,
    total: int = 100,
    paused: Any = (),
) -> Demand:
    return Demand(
        slow=slow or {}, slow_total=total, fast=fast or {}, paused_tenants=paused
    )


def claimed_by(me: Node, what: Demand, marks: Marks | None = None) -> list[Claimed]:
    return claim(what, node_id=me.id, node="host, 1", marks=marks or Marks())


def test_a_claim_names_the_attempt_sets_its_start_and_counts_it(
    acme: Tenant, me: Node
) -> None:
    item = factories.item(acme, "act", tenant_slug="acme")
    [claimed] = claimed_by(me, demand({"act": 5}))
    item.refresh_from_db()
    assert item.status == WorkItem.Status.EXECUTING
    assert (item.claim_id, item.node_id, item.attempts) == (claimed.claim_id, me.id, 1)
    assert item.started_at is not None
    assert claimed.tenant == "acme"
    assert claimed.claim_id.version == 7
    assert abs(clock.uuid7_time(claimed.claim_id) - clock.now()) < timedelta(seconds=10)


def test_each_claim_is_a_fresh_attempt(acme: Tenant, me: Node) -> None:
    for n in range(20):
        factories.item(acme, "act", dedup_key=str(n))
    assert len({c.claim_id for c in claimed_by(me, demand({"act": 20}))}) == 20


def test_no_more_is_claimed_than_asked_for_per_handler_and_in_all(
    acme: Tenant, me: Node
) -> None:
    for handler in ("act", "act_retry"):
        for n in range(5):
            factories.item(acme, handler, dedup_key=str(n))
    got = claimed_by(me, demand({"act": 2, "act_retry": 4}, total=5))
    assert sorted(c.handler for c in got) == ["act", "act"] + ["act_retry"] * 3


def test_fast_handlers_are_claimed_beside_the_free_slots(
    acme: Tenant, me: Node
) -> None:
    for n in range(6):
        factories.item(acme, "act", dedup_key=str(n))
        factories.item(acme, "act_retry", dedup_key=str(n))
    got = claimed_by(me, demand({"act": 1}, {"act_retry": 6}, total=1))
    assert sorted(c.handler for c in got) == ["act"] + ["act_retry"] * 6


def test_the_oldest_due_come_first_and_what_is_not_due_stays(
    acme: Tenant, me: Node
) -> None:
    now = clock.now()
    factories.item(acme, "act", dedup_key="later", not_before=now + timedelta(hours=1))
    factories.item(
        acme, "act", dedup_key="second", not_before=now - timedelta(minutes=1)
    )
    factories.item(
        acme, "act", dedup_key="first", not_before=now - timedelta(minutes=2)
    )
    assert [c.dedup_key for c in claimed_by(me, demand({"act": 9}))] == [
        "first",
        "second",
    ]


def test_what_is_not_asked_for_paused_held_or_suspect_is_left(
    acme: Tenant, me: Node
) -> None:
    paused = factories.tenant("paused")
    factories.item(acme, "retired.handler")
    factories.item(paused, "act")
    factories.item(acme, "act", dedup_key="held", status="held")
    factories.item(acme, "act", dedup_key="suspect", recoveries=1)
    assert claimed_by(me, demand({"act": 9}, paused=[paused.id])) == []
    assert WorkItem.objects.filter(attempts=0).count() == 4


def test_a_suspect_is_claimed_alone(acme: Tenant, me: Node) -> None:
    for n in range(3):
        factories.item(acme, "act", dedup_key=str(n), recoveries=1)
    assert suspect_due_since(["act"], paused_tenants=[]) is not None
    assert suspect_due_since(["act_fail"], paused_tenants=[]) is None
    assert len(claim_suspect(["act"], node_id=me.id, node="n", paused_tenants=[])) == 1
    assert (
        claim_suspect(["act"], node_id=me.id, node="n", paused_tenants=[acme.id]) == []
    )


def test_looking_from_the_mark_finds_what_came_behind_it_and_a_second_later_what_came_before(
    acme: Tenant, me: Node
) -> None:
    marks, now = Marks(), clock.now()
    for n in range(4):
        factories.item(
            acme, "act", dedup_key=str(n), not_before=now - timedelta(minutes=10 - n)
        )
    assert [c.dedup_key for c in claimed_by(me, demand({"act": 2}), marks)] == [
        "0",
        "1",
    ]
    factories.item(acme, "act", dedup_key="old", not_before=now - timedelta(hours=1))
    assert [c.dedup_key for c in claimed_by(me, demand({"act": 1}), marks)] == [
        "old" if connection.vendor == "sqlite" else "2"
    ]
    marks.looked_back.pop("act", None)  # a second later
    assert [c.dedup_key for c in claimed_by(me, demand({"act": 1}), marks)] == [
        "2" if connection.vendor == "sqlite" else "old"
    ]


def test_nothing_more_behind_the_mark_makes_the_next_look_start_at_the_beginning() -> (
    None
):
    marks = Marks()
    marks.looked_back["act"] = 100.0
    marks.last["act"] = (clock.now(), 7)
    marks.learn("act", more=True)
    assert marks.start("act", at=100.1)[1] == 7
    marks.learn("act", more=False)
    assert marks.start("act", at=100.1)[1] == 0


def test_where_a_look_from_the_beginning_takes_long_it_is_done_less_often() -> None:
    marks = Marks()
    assert marks.start("act", at=100.0)[1] == 0
    marks.last["act"] = (clock.now(), 7)
    marks.looked(began=100.0, took=0.1)  # two hundredths of five seconds
    marks.looked(began=100.2, took=0.001)  # a claim from the mark says nothing of it
    marks.learn("act", more=False)
    assert marks.start("act", at=104.0)[1] == 7
    assert marks.start("act", at=105.1)[1] == 0
    marks.looked(began=105.1, took=60)
    assert marks.start("act", at=115.0)[1] == 7
    assert marks.start("act", at=115.2)[1] == 0
    marks.looked(began=115.2, took=0.001)
    assert marks.start("act", at=116.3)[1] == 0


def test_a_handler_may_have_more_when_it_gave_all_or_the_total_cut_it() -> None:
    asked = demand({"a": 2, "b": 5}, {"c": 9}, total=4)
    assert asked.may_have_more({"a": 1, "b": 3, "c": 9}) == ["a", "b", "c"]  # 4 in all
    assert asked.may_have_more({"a": 2, "b": 1, "c": 8}) == ["a"]
    assert asked.may_have_more({}) == []


@pytest.mark.postgresql
def test_a_prepared_claim_takes_marks_of_any_size(acme: Tenant, me: Node) -> None:
    marks = Marks()
    for n, id in enumerate((1, 2, 3, 4, 5, 6, 7, 40_000, 2**33, 8)):
        marks.last["act"] = (clock.now() - timedelta(days=1), id)
        marks.looked_back["act"] = clock.steady()
        factories.item(acme, "act", dedup_key=str(n))
        [got] = claimed_by(me, demand({}, {"act": 1}), marks)
        assert got.dedup_key == str(n)


@pytest.mark.race
def test_two_workers_never_get_the_same_item(
    acme: Tenant, transactional_db: None
) -> None:
    count, threads = 300, 4
    for n in range(count):
        factories.item(acme, "act", dedup_key=str(n))
    nodes = [factories.node() for _ in range(threads)]
    got: list[int] = []
    start = threading.Barrier(threads)

    def work(me: Node) -> None:
        start.wait(10)
        try:
            while some := claimed_by(me, demand({"act": 7})):
                got.extend(c.id for c in some)
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work, args=(n,)) for n in nodes]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(got) == len(set(got)) == count


@pytest.mark.postgresql
def test_items_that_somebody_else_has_locked_are_stepped_over(
    acme: Tenant, me: Node
) -> None:
    first = factories.item(
        acme, "act", dedup_key="1", not_before=clock.now() - timedelta(hours=1)
    )
    factories.item(acme, "act", dedup_key="2")
    got: list[Claimed] = []

    def work() -> None:
        got.extend(claimed_by(me, demand({"act": 5})))
        connections.close_all()

    with transaction.atomic():
        WorkItem.objects.select_for_update().get(pk=first.pk)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(10)
    assert [c.dedup_key for c in got] == ["2"]


def test_an_item_of_a_transaction_that_is_not_committed_is_never_claimed(
    acme: Tenant, me: Node
) -> None:
    got: list[list[Claimed]] = []

    def work() -> None:
        got.append(claimed_by(me, demand({"act": 5})))
        connections.close_all()

    if connection.vendor == "sqlite":
        with transaction.atomic():
            factories.item(acme, "act")
            transaction.set_rollback(True)
        work()
    else:
        with transaction.atomic():
            factories.item(acme, "act")
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(10)
            transaction.set_rollback(True)
    assert got == [[]]


LIMITS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), st.integers(1, 4), max_size=3
)


@hypothesis_settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "d"]),
            st.integers(-5, 3),
            st.sampled_from(["pending", "held", "executing"]),
            st.integers(0, 1),
        ),
        max_size=15,
    ),
    slow=LIMITS,
    fast=LIMITS,
    total=st.integers(0, 6),
)
def test_a_claim_gives_what_the_rule_says_on_either_database(
    transactional_db: None, rows: Any, slow: Any, fast: Any, total: int
) -> None:
    """The rule in plain Python; both databases are held against it, and so against each other."""
    WorkItem.objects.all().delete()
    fast = {key: value for key, value in fast.items() if key not in slow}
    tenant, _ = Tenant.objects.get_or_create(
        slug="property", defaults={"name": "Property"}
    )
    now = clock.now()
    made = [
        factories.item(
            tenant,
            handler,
            dedup_key=str(n),
            not_before=now + timedelta(minutes=minutes),
            status=status,
            recoveries=recoveries,
        )
        for n, (handler, minutes, status, recoveries) in enumerate(rows)
    ]
    due = sorted(
        (
            i
            for i in made
            if i.status == "pending" and i.not_before <= now and not i.recoveries
        ),
        key=lambda i: (i.not_before, i.id),
    )
    expected, left = set(), total
    for handler, limit in slow.items():
        some = [i.id for i in due if i.handler == handler][: min(limit, left)]
        left -= len(some)
        expected.update(some)
    for handler, limit in fast.items():
        expected.update([i.id for i in due if i.handler == handler][:limit])
    got = claim(demand(slow, fast, total), node_id=uuid4(), node="n", marks=Marks())
    assert {c.id for c in got} == expected
    assert [(c.not_before, c.id) for c in got] == sorted(
        (c.not_before, c.id) for c in got
    )


@pytest.mark.postgresql
@pytest.mark.parametrize("analyzed", [False, True])
def test_the_claim_walks_the_index_of_pending_rows_with_and_without_statistics(
    acme: Tenant, me: Node, analyzed: bool
) -> None:
    WorkItem.objects.bulk_create(
        [
            WorkItem(
                tenant=acme,
                tenant_slug="acme",
                handler=f"h{n % 3}",
                dedup_key=str(n),
                not_before=clock.now(),
                enqueued_at=clock.now(),
                trigger="call",
            )
            for n in range(5000)
        ]
    )
    params = {
        "node_id": me.id,
        "node": "n",
        "now": None,
        "paused": [],
        "slow_handlers": ["h0"],
        "slow_limits": [10],
        "slow_from_at": [clock.now() - timedelta(days=1)],
        "slow_from_id": [0],
        "slow_total": 10,
        "fast_handlers": ["h1"],
        "fast_limits": [100],
        "fast_from_at": [clock.now() - timedelta(days=1)],
        "fast_from_id": [0],
        "fast_total": 100,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        if analyzed:
            cursor.execute("ANALYZE workqueue_workitem")
        cursor.execute("EXPLAIN " + sql.CLAIM, params)
        plan = "\n".join(row[0] for row in cursor.fetchall())
        transaction.set_rollback(True)
    assert plan.count("workitem_pending") == 2, plan
    assert "Seq Scan on workqueue_workitem" not in plan, plan
