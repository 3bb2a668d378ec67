"""The Run of an item that was ended from outside."""

from collections.abc import Callable

from audit import clock
from tests import factories
from workqueue.attempt import Attempt
from workqueue.ended import run_of
from workqueue.models import Tenant, WorkItem


def test_the_attempt_that_was_under_way_keeps_its_id(
    attempt: Callable[..., Attempt],
) -> None:
    one = attempt()
    run = run_of(WorkItem.objects.get(), outcome="abandoned", now=clock.now())
    assert run.id == one.claimed.claim_id
    assert (run.attempt, run.item_id) == (1, one.claimed.id)


def test_an_item_that_never_began_gets_an_id_of_this_moment(acme: Tenant) -> None:
    now = clock.now()
    item = factories.item(acme, "act", tenant_slug="acme", trigger="call")
    run = run_of(item, outcome="cancelled", now=now, summary="dropped by olga")
    assert abs((clock.uuid7_time(run.id) - now).total_seconds()) < 0.002
    assert (run.claimed_at, run.attempt, run.summary) == (None, 0, "dropped by olga")
