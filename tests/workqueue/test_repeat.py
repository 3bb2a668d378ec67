"""A run that ended badly is enqueued again as the same item, once, with a sentence per row."""

from typing import Any

import pytest

from audit import clock
from audit.models import Change
from tests import factories, screens
from workqueue.models import Tenant, WorkItem
from workqueue.repeat import repeat

BY: dict[str, Any] = {"who": "olga", "origin": "admin", "why": "CHG-1", "tenants": None}


def failed(of: Tenant, **values: Any) -> Any:
    return screens.run(of, **{"handler": "act", "outcome": "failed", **values})


def test_the_same_item_is_enqueued_again_and_the_change_is_kept(acme, timetable):
    slot = clock.now()
    run = failed(acme, dedup_key="pair-7", slot=slot)
    [result] = repeat([run.id], **BY)
    item = WorkItem.objects.get()
    assert (result.done, result.text) == (True, f"enqueued as item {item.pk}")
    assert (item.tenant_id, item.handler, item.dedup_key, item.trigger, item.slot) == (
        acme.pk, "act", "pair-7", "operator", slot,
    )  # fmt: skip
    change = Change.objects.get()
    assert (change.verb, change.why, change.tenant_id) == ("retried", "CHG-1", acme.pk)
    assert str(run.id) in change.subject


@pytest.mark.parametrize(
    ("status", "word"), [("pending", "waits"), ("executing", "executes")]
)
def test_an_item_that_lives_is_not_doubled(acme, timetable, status, word):
    item = factories.item(acme, "act", status=status, tenant_slug="acme")
    [result] = repeat([failed(acme).id], **BY)
    assert (result.done, result.text) == (False, f"item {item.pk} of it {word} already")
    assert WorkItem.objects.count() == 1
    assert not Change.objects.exists()


def test_an_item_that_is_held_is_released(acme, timetable):
    item = screens.held(acme, handler="act")
    [result] = repeat([failed(acme).id], **BY)
    assert (result.done, result.text) == (
        True,
        f"item {item.pk} was held and is released",
    )
    assert WorkItem.objects.get().status == "pending"


def test_what_cannot_be_retried_says_why_and_the_others_go_on(acme, timetable):
    good = failed(acme)
    wrong = {
        "it succeeded: there is nothing to retry": failed(acme, outcome="succeeded"),
        "no row of the timetable has its handler any more": failed(acme, handler="old"),
        "its tenant is not eligible: inactive": failed(
            factories.tenant("asleep", is_active=False)
        ),
    }
    gone = factories.tenant("gone")
    wrong["its tenant was removed"] = failed(gone)
    gone.delete()
    results = repeat(
        [*(run.id for run in wrong.values()), clock.uuid7(), good.id], **BY
    )
    assert [result.text for result in results[:-1]] == [
        *wrong,
        "this run is no longer kept",
    ]
    assert results[-1].done


def test_a_run_of_a_tenant_that_one_may_not_see_is_not_there(acme, timetable):
    foreign = failed(factories.tenant("other"))
    [result] = repeat([foreign.id], **{**BY, "tenants": frozenset([acme.pk])})
    assert (result.done, result.text) == (False, "this run is no longer kept")
