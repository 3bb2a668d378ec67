"""What an operator does to items."""

from collections.abc import Callable
from datetime import timedelta

from audit import clock
from audit.models import Change, LateResult, Run
from tests import factories
from workqueue import operate
from workqueue import run as run_module
from workqueue.attempt import Attempt
from workqueue.finish import finish
from workqueue.models import Node, Tenant, WorkItem

BY = {"who": "olga", "origin": "admin", "why": "CHG-1", "tenants": None}


def test_cancelling_a_waiting_item_records_a_run_and_who_did_it(acme: Tenant) -> None:
    item = factories.item(acme, "act", tenant_slug="acme", trigger="call")
    [result] = operate.cancel([item.pk], **BY)
    assert (result.done, result.text) == (True, "cancelled")
    assert not WorkItem.objects.exists()
    run = Run.objects.get()
    assert (run.outcome, run.summary, run.tenant, run.claimed_at) == (
        "cancelled",
        "cancelled by olga: CHG-1",
        "acme",
        None,
    )
    change = Change.objects.get()
    assert (change.who, change.verb, change.why, change.tenant_id) == (
        "olga",
        "cancelled",
        "CHG-1",
        acme.id,
    )


def test_the_result_of_a_cancelled_run_is_kept_as_a_late_one(
    attempt: Callable[..., Attempt], me: Node
) -> None:
    one = attempt()
    operate.cancel([one.claimed.id], **BY)
    finish([run_module.run(one, stopping=lambda: False)], node_id=me.id, node="n")
    assert Run.objects.get().outcome == "cancelled"
    assert LateResult.objects.get().claim_id == Run.objects.get().id


def test_an_item_that_was_put_off_is_due_at_once_when_it_is_retried(
    acme: Tenant,
) -> None:
    later = clock.now() + timedelta(hours=1)
    item = factories.item(acme, "act", not_before=later, failures=1, trigger="call")
    assert operate.retry([item.pk], **BY)[0].done
    item.refresh_from_db()
    assert item.not_before <= clock.now()
    assert item.failures == 1
    assert Change.objects.get().verb == "retried"
    [again] = operate.retry([item.pk], **BY)
    assert (again.done, again.text) == (False, "it does not wait for its next attempt")


def test_a_held_item_is_released_with_a_clean_slate(acme: Tenant) -> None:
    item = factories.item(
        acme, "act", status="held", recoveries=3, held_reason="its worker died 3 times"
    )
    assert operate.release([item.pk], **BY)[0].done
    item.refresh_from_db()
    assert (item.status, item.recoveries, item.held_reason) == ("pending", 0, "")


def test_a_dropped_item_leaves_a_run(acme: Tenant) -> None:
    item = factories.item(acme, "act", status="held", trigger="call")
    assert operate.drop([item.pk], **BY)[0].done
    assert Run.objects.get().summary == "dropped by olga: CHG-1"


def test_what_does_not_fit_is_refused_with_a_sentence_and_the_others_go_on(
    acme: Tenant,
) -> None:
    waiting = factories.item(acme, "act", dedup_key="1", trigger="call")
    held = factories.item(acme, "act", dedup_key="2", status="held", trigger="call")
    results = operate.release([waiting.pk, 10**9, held.pk], **BY)
    assert [(r.done, r.text) for r in results] == [
        (False, "it is not held"),
        (False, "it is no longer in the queue"),
        (True, "released"),
    ]
    assert operate.cancel([waiting.pk], **BY)[0].done
    assert operate.drop([held.pk], **BY)[0].text == "it is not held: cancel it instead"


def test_items_of_a_tenant_that_one_may_not_see_are_not_there(acme: Tenant) -> None:
    foreign = factories.item(factories.tenant("other"), "act")
    scoped = {**BY, "tenants": frozenset([acme.id])}
    assert (
        operate.cancel([foreign.pk], **scoped)[0].text == "it is no longer in the queue"
    )
    assert WorkItem.objects.filter(pk=foreign.pk).exists()
