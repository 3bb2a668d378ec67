"""Each rule finds the rows that break it, and none where all is well."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import clock, ledger
from audit.ledger import RunRecord
from audit.models import Change, Line, NodeEvent
from scheduler.models import MasterLease, Tick
from tests import factories
from workqueue import invariants, policy
from workqueue.models import Node, Setting, Tenant, WorkItem

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def broken() -> list[tuple[str, str]]:
    """The ids and sentences of the rules that do not hold."""
    return [(one.rule.id, one.rule.sentence) for one in invariants.check()]


def ids() -> list[str]:
    return [id for id, _ in broken()]


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def item(of: Tenant, **values: Any) -> WorkItem:
    return factories.item(of, **{"tenant_slug": of.slug, "trigger": "slot", **values})


def executing(of: Tenant, by: Node, **values: Any) -> WorkItem:
    now = clock.now()
    claim = {
        "claim_id": clock.uuid7(),
        "node_id": by.pk,
        "node": str(by),
        "attempts": 1,
    }
    times = {"claimed_at": now, "renewed_at": now, "started_at": now}
    return item(of, **{"status": "executing", **claim, **times, **values})


def run(of: WorkItem, **values: Any) -> UUID:
    id = of.claim_id or clock.uuid7()
    now = clock.now()
    record = {
        "id": id, "item_id": of.pk, "tenant_id": of.tenant_id, "tenant": of.tenant_slug,
        "handler": of.handler, "tick_id": of.tick_id, "trigger": of.trigger,
        "enqueued_at": of.enqueued_at, "finished_at": now, "outcome": "succeeded", "attempt": 1,
    }  # fmt: skip
    ledger.record([RunRecord(**{**record, **values})], finish_id=clock.uuid7())
    return id


def tick(**values: Any) -> Tick:
    now = clock.now()
    return Tick.objects.create(
        **{
            "handler": "a.b",
            "trigger": "slot",
            "slot": now,
            "at": now,
            "term": 0,
            **values,
        }
    )


def test_an_installation_in_order_breaks_nothing(acme: Tenant) -> None:
    """One of everything, at every stage of its life."""
    policy.save({"WORKER_CONCURRENCY": 12}, who="w", origin="admin", why="")
    Setting.objects.update(at=clock.now() - HOUR)
    report = {
        "settings_version": 1,
        "policy": policy.as_values(policy.resolve({"WORKER_CONCURRENCY": 12})[0]),
    }
    worker = factories.node("worker", report=report, started_at=clock.now() - HOUR)
    one = tick(enqueued=4)
    item(acme, tick_id=one.pk)
    executing(acme, worker, tick_id=one.pk, handler="a.c")
    done = item(acme, tick_id=one.pk, handler="a.d")
    claim = run(done, line_count=2, dropped_lines=1)
    held = item(
        acme, tick_id=one.pk, handler="a.e", status="held", recoveries=3, attempts=3
    )
    run(held, outcome="failed")
    for number in (1, 3):
        Line.objects.create(
            claim_id=claim, seq=number, at=clock.now(), level=20, text="x"
        )
    done.delete()
    assert broken() == []


@pytest.fixture
def worker() -> Node:
    return factories.node("worker", started_at=clock.now() - HOUR)


def an_item_vanished(acme: Tenant, worker: Node) -> None:
    tick(enqueued=1)


def a_tick_counts_too_little(acme: Tenant, worker: Node) -> None:
    item(acme, tick_id=tick(enqueued=0).pk)


def a_pending_item_keeps_its_claim(acme: Tenant, worker: Node) -> None:
    item(acme, claim_id=clock.uuid7())


def an_executing_item_has_no_holder(acme: Tenant, worker: Node) -> None:
    executing(acme, worker, node_id=None)


def two_items_share_a_claim(acme: Tenant, worker: Node) -> None:
    first = executing(acme, worker)
    executing(acme, worker, handler="a.c", claim_id=first.claim_id)


def a_finished_attempt_still_holds_its_item(acme: Tenant, worker: Node) -> None:
    run(executing(acme, worker))


def a_fail_row_was_recovered(acme: Tenant, worker: Node) -> None:
    item(acme, abandon="fail", recoveries=1, attempts=1)


def there_are_no_leases(acme: Tenant, worker: Node) -> None:
    MasterLease.objects.all().delete()


def two_were_elected_for_a_term(acme: Tenant, worker: Node) -> None:
    for name in ("a, 1", "b, 2"):
        ledger.node_event(
            node_id=clock.uuid7(), node=name, kind="server", type="elected", term=7
        )


def a_master_ticked_after_its_term(acme: Tenant, worker: Node) -> None:
    MasterLease.objects.update(term=8)
    ledger.node_event(
        node_id=clock.uuid7(), node="a, 1", kind="server", type="elected", term=8
    )
    NodeEvent.objects.update(at=clock.now() - HOUR)
    tick(term=7)


def a_term_nobody_was_elected_for_ticked(acme: Tenant, worker: Node) -> None:
    tick(term=99)


def an_item_died_thrice_and_still_runs(acme: Tenant, worker: Node) -> None:
    item(acme, recoveries=3, attempts=3)


def an_item_has_more_failures_than_attempts(acme: Tenant, worker: Node) -> None:
    item(acme, failures=2, attempts=1)


def an_item_runs_that_never_started(acme: Tenant, worker: Node) -> None:
    executing(acme, worker, attempts=0)


def a_stopped_process_still_holds_an_item(acme: Tenant, worker: Node) -> None:
    gone = factories.node("worker", status="stopped", stopped_at=clock.now() - HOUR)
    executing(acme, gone)


def a_silent_process_still_holds_an_item(acme: Tenant, worker: Node) -> None:
    executing(acme, factories.node("worker", heartbeat_at=clock.now() - HOUR))


def an_unknown_process_holds_an_item(acme: Tenant, worker: Node) -> None:
    executing(acme, worker, node_id=clock.uuid7(), claimed_at=clock.now() - HOUR)


def a_claim_was_not_renewed(acme: Tenant, worker: Node) -> None:
    executing(acme, worker, renewed_at=clock.now() - HOUR)


def an_item_has_no_tenant(acme: Tenant, worker: Node) -> None:
    item(acme, enqueued_at=clock.now() - HOUR)
    acme.delete()


def attempts_of_an_item_belong_to_two_tenants(acme: Tenant, worker: Node) -> None:
    one = item(acme)
    run(one)
    run(one, id=clock.uuid7(), tenant_id=acme.pk + 1)


def a_process_applies_an_old_version(acme: Tenant, worker: Node) -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, who="w", origin="admin", why="")
    Setting.objects.update(at=clock.now() - HOUR)
    Node.objects.update(report={"settings_version": 0})


def a_process_uses_other_values_than_it_should(acme: Tenant, worker: Node) -> None:
    Setting.objects.update(at=clock.now() - HOUR)
    Node.objects.update(
        report={"settings_version": 1, "policy": {"WORKER_CONCURRENCY": 9999}}
    )


def lines_of_a_run_are_missing(acme: Tenant, worker: Node) -> None:
    claim = run(item(acme), line_count=2)
    Line.objects.create(claim_id=claim, seq=1, at=clock.now(), level=20, text="x")


def a_run_has_more_lines_than_it_counts(acme: Tenant, worker: Node) -> None:
    claim = run(item(acme), line_count=1)
    Line.objects.create(claim_id=claim, seq=5, at=clock.now(), level=20, text="x")


def somebody_changed_something(acme: Tenant, worker: Node) -> None:
    Change.objects.create(
        at=clock.now(), who="", origin="admin", subject="x", verb="y", new=1
    )


def a_change_says_neither_old_nor_new(acme: Tenant, worker: Node) -> None:
    Change.objects.create(
        at=clock.now(), who="w", origin="admin", subject="x", verb="y"
    )


BREAKAGES: list[tuple[str, Callable[[Tenant, Node], None]]] = [
    ("I2", an_item_vanished),
    ("I2", a_tick_counts_too_little),
    ("I3", a_pending_item_keeps_its_claim),
    ("I3", an_executing_item_has_no_holder),
    ("I3", two_items_share_a_claim),
    ("I4", a_finished_attempt_still_holds_its_item),
    ("I5", a_fail_row_was_recovered),
    ("I6", there_are_no_leases),
    ("I6", two_were_elected_for_a_term),
    ("I6", a_master_ticked_after_its_term),
    ("I6", a_term_nobody_was_elected_for_ticked),
    ("I7", an_item_died_thrice_and_still_runs),
    ("I7", an_item_has_more_failures_than_attempts),
    ("I7", an_item_runs_that_never_started),
    ("I8", a_stopped_process_still_holds_an_item),
    ("I8", a_silent_process_still_holds_an_item),
    ("I8", an_unknown_process_holds_an_item),
    ("I8", a_claim_was_not_renewed),
    ("I10", an_item_has_no_tenant),
    ("I10", attempts_of_an_item_belong_to_two_tenants),
    ("I11", a_process_applies_an_old_version),
    ("I11", a_process_uses_other_values_than_it_should),
    ("I12", lines_of_a_run_are_missing),
    ("I12", a_run_has_more_lines_than_it_counts),
    ("I14", somebody_changed_something),
    ("I14", a_change_says_neither_old_nor_new),
]


@pytest.mark.parametrize(
    ("id", "breakage"), BREAKAGES, ids=[b.__name__ for _, b in BREAKAGES]
)
def test_it_is_found_that(
    id: str, breakage: Callable[[Tenant, Node], None], acme: Tenant, worker: Node
) -> None:
    policy.save({"WORKER_RECLAIM_INTERVAL_MS": 1000}, who="w", origin="admin", why="")
    assert ids() == []
    breakage(acme, worker)
    assert ids() == [id]


@pytest.mark.postgresql
def test_it_is_found_that_an_attempt_has_two_runs(acme: Tenant) -> None:
    """The key of the partitioned table is (id, finished_at): the database lets this pass."""
    one = run(item(acme))
    run(
        item(acme, handler="a.c"),
        id=one,
        finished_at=clock.now() - timedelta(seconds=1),
    )
    assert "I4" in ids()


def test_where_no_worker_lives_that_could_return_it_nothing_is_late(
    acme: Tenant,
) -> None:
    a_stopped_process_still_holds_an_item(acme, factories.node("server"))
    assert ids() == []


def test_a_version_that_was_just_saved_need_not_be_applied_yet(worker: Node) -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, who="w", origin="admin", why="")
    Node.objects.update(report={"settings_version": 0})
    assert ids() == []


def test_it_reads_only_so_far_back_as_it_is_asked(acme: Tenant) -> None:
    tick(enqueued=1, at=clock.now() - 3 * HOUR)
    assert [one.rule.id for one in invariants.check(hours=4)] == ["I2"]
    assert invariants.check(hours=2) == []


def test_it_changes_nothing(acme: Tenant, worker: Node) -> None:
    with CaptureQueriesContext(connection) as queries:
        invariants.check()
    for query in queries:
        assert (
            query["sql"]
            .lstrip()
            .startswith(("SELECT", "SET TRANSACTION", "BEGIN", "COMMIT"))
        ), query["sql"]


@pytest.mark.postgresql
def test_the_database_itself_keeps_it_from_writing(worker: Node) -> None:
    with (
        pytest.raises(Exception, match="read-only transaction"),
        invariants._one_snapshot(),
    ):
        Node.objects.update(status="stopped")


def test_many_broken_rows_are_cut_and_it_says_so(acme: Tenant) -> None:
    for number in range(invariants.MOST + 5):
        tick(enqueued=1, handler=f"a.{number}")
    (one,) = invariants.check()
    assert len(one.rows) == invariants.MOST
    assert one.more


def test_as_json_it_says_what_was_checked_and_what_is_broken(acme: Tenant) -> None:
    an_executing_item_has_no_holder(acme, factories.node())
    found = json.loads(invariants.as_json(invariants.check()))
    assert found["ok"] is False
    assert found["checked"] == [
        "I1",
        "I2",
        "I3",
        "I4",
        "I5",
        "I6",
        "I7",
        "I8",
        "I9",
        "I10",
        "I11",
        "I12",
        "I14",
    ]
    assert found["broken"][0]["rows"][0]["tenant"] == "acme"
