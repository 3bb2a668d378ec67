"""operations.bulk: every row once, with its result, whatever happens in between."""

from typing import Any

import pytest

from audit import clock
from audit.models import Change, Run
from scheduler.handlers.operations import bulk, start
from scheduler.handlers.operations.models import BulkOperation
from tests import factories, screens
from tests.scheduler.handlers.operations.conftest import HANDLER
from workqueue import tenancy
from workqueue.models import Tenant, WorkItem

pytestmark = pytest.mark.django_db


def asked(**values: Any) -> BulkOperation:
    """An operation as the page makes it: all tenants, all that there is now."""
    newest = WorkItem.objects.order_by("-pk").first()
    draft = BulkOperation(
        **{
            "tenant": tenancy.platform(),
            "tenants": None,
            "verb": "cancel",
            "of": "items",
            "query": "",
            "asked_at": clock.now(),
            "max_id": newest.pk if newest else 0,
            "at_most": 10_000,
            "expected": 1,
            "who": "olga",
            "why": "CHG-1",
            **values,
        }
    )
    start.start(draft, origin="admin")
    return draft


def said(operation: BulkOperation) -> list[tuple[bool, str]]:
    return list(operation.results.order_by("pk").values_list("done", "text"))


def items(of: Tenant, count: int, **values: Any) -> list[WorkItem]:
    return [
        screens.pending(of, handler=HANDLER, dedup_key=str(n), **values)
        for n in range(count)
    ]


def test_it_is_enqueued_with_the_operation_and_written_down(acme):
    operation = asked()
    item = WorkItem.objects.get(handler="operations.bulk")
    assert (item.dedup_key, item.trigger) == (str(operation.pk), "operator")
    change = Change.objects.get(subject__startswith=f"operation:{operation.pk} ")
    assert (change.who, change.why, change.new["rows"]) == ("olga", "CHG-1", 1)


def test_every_matching_item_is_done_and_has_a_result_and_a_change(acme, carry_out):
    items(acme, 3)
    screens.held(factories.tenant("granite"), handler=HANDLER)
    operation = asked()
    outcome = carry_out(operation)
    assert (outcome.changed, outcome.skipped, outcome.failed) == (3, 1, 0)
    assert said(operation) == [
        *[(True, "cancelled")] * 3,
        (False, "it is held: release or drop it"),
    ]
    assert Run.objects.filter(outcome="cancelled").count() == 3
    why = Change.objects.filter(verb="cancelled").values_list("why", flat=True)
    assert set(why) == {f"CHG-1 (operation {operation.pk})"}
    operation.refresh_from_db()
    assert operation.state(lives=False) == "succeeded"


def test_what_was_enqueued_after_it_was_asked_for_is_left_alone(acme, carry_out):
    items(acme, 1)
    operation = asked()
    later = screens.pending(acme, handler=HANDLER, dedup_key="later")
    carry_out(operation)
    assert list(WorkItem.objects.exclude(handler="operations.bulk")) == [later]


def test_only_what_the_filters_match_is_touched(acme, carry_out):
    items(acme, 1)
    other = screens.pending(factories.tenant("granite"), handler=HANDLER)
    carry_out(asked(query="tenant=acme"))
    assert WorkItem.objects.filter(pk=other.pk).exists()


def test_it_never_touches_rows_of_tenants_that_its_operator_does_not_operate(
    acme, carry_out
):
    items(acme, 2)
    foreign = screens.pending(factories.tenant("granite"), handler=HANDLER)
    operation = asked(tenant=acme, tenants=[acme.pk], query="tenant=granite,acme")
    carry_out(operation)
    assert WorkItem.objects.filter(pk=foreign.pk).exists()
    assert set(operation.results.values_list("tenant", flat=True)) == {"acme"}


def test_it_takes_no_more_rows_than_it_was_allowed(acme, carry_out, monkeypatch):
    monkeypatch.setattr(bulk, "PAGE", 2)
    items(acme, 5)
    operation = asked(at_most=3)
    carry_out(operation)
    assert operation.results.count() == 3
    assert WorkItem.objects.filter(handler=HANDLER).count() == 2


def test_it_goes_on_where_it_was_when_its_process_ends(acme, carry_out):
    items(acme, 4)
    operation = asked()
    looks = iter([False, False, True])
    outcome = carry_out(operation, stopping=lambda: next(looks))
    assert outcome.again_in is not None
    assert operation.results.count() == 2
    carry_out(operation)
    assert operation.results.filter(done=True).count() == 4


def test_a_page_that_is_read_again_after_a_crash_repeats_no_row(acme, carry_out):
    screens.held(acme, handler=HANDLER)
    operation = asked()
    carry_out(operation)
    # The cursor and the end are written after the rows: as if the process had died before.
    BulkOperation.objects.update(cursor="", finished_at=None)
    carry_out(operation)
    assert operation.results.count() == 1


def test_it_stops_when_an_operator_says_so(acme, carry_out):
    items(acme, 2)
    operation = asked()
    assert start.stop(operation, who="ivan", origin="admin", why="wrong filter")
    assert not start.stop(operation, who="ivan", origin="admin", why="again")
    outcome = carry_out(operation)
    assert "stopped by ivan: wrong filter" in outcome.summary
    operation.refresh_from_db()
    assert operation.state(lives=True) == "cancelled"
    assert not operation.results.exists()
    assert Change.objects.filter(verb="stopped", why="wrong filter").exists()


def test_one_row_that_raises_is_told_and_the_others_go_on(acme, carry_out, monkeypatch):
    items(acme, 2)
    operation = asked()
    first = WorkItem.objects.filter(handler=HANDLER).order_by("pk").first()
    genuine = bulk._do

    def fails_once(operation: Any, verb: Any, row: Any) -> Any:
        if row.target == str(first.pk):
            raise RuntimeError("no")
        return genuine(operation, verb, row)

    monkeypatch.setattr(bulk, "_do", fails_once)
    outcome = carry_out(operation)
    assert (outcome.word, outcome.changed, outcome.failed) == ("partial", 1, 1)
    assert [done for done, _ in said(operation)] == [False, True]
    assert "an error: see run" in said(operation)[0][1]


def test_failed_runs_are_retried_once_per_item_newest_first(acme, carry_out):
    for error in ("first", "second"):
        screens.run(acme, handler=HANDLER, outcome="failed", error=error)
    screens.run(acme, handler=HANDLER, outcome="succeeded")
    screens.run(acme, handler=HANDLER, outcome="cancelled")
    screens.run(acme, handler="gone.handler", outcome="failed")
    operation = asked(verb="repeat", of="runs", max_id=None)
    carry_out(operation)
    item = WorkItem.objects.get(handler=HANDLER)
    assert (item.trigger, item.tenant_id) == ("operator", acme.pk)
    assert said(operation) == [
        (False, "no row of the timetable has its handler any more"),
        (True, f"enqueued as item {item.pk}"),
        (False, "the same item was enqueued for a later run of it"),
    ]


def test_runs_that_ended_after_it_was_asked_for_are_left_alone(acme, carry_out):
    operation = asked(verb="repeat", of="runs", query="since=24+h", max_id=None)
    screens.run(acme, handler=HANDLER, outcome="failed")
    carry_out(operation)
    assert not operation.results.exists()


def test_a_run_now_takes_up_what_is_unfinished_and_was_asked_for_lately(
    acme, carry_out
):
    over, open_ = asked(), asked()
    asked(asked_at=clock.now() - bulk.LATELY * 2)
    carry_out(over)
    assert list(bulk.unfinished(clock.now())) == [(open_.tenant_id, str(open_.pk))]
    assert "is over" in carry_out(over).summary
