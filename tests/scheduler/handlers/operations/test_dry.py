"""What an operation would do, counted for the page that asks."""

from datetime import timedelta

import pytest

from audit import clock
from scheduler.handlers.operations import dry, matching
from scheduler.handlers.operations.models import BulkOperation
from tests import factories, screens
from tests.scheduler.handlers.operations.conftest import HANDLER
from workqueue import tenancy
from workqueue.verbs import REPEAT, VERBS

pytestmark = pytest.mark.django_db


def draft(query: str = "") -> BulkOperation:
    return BulkOperation(
        tenant=tenancy.platform(), tenants=None, verb="release", of="items", query=query,
        asked_at=clock.now(), max_id=2**40, at_most=10,
    )  # fmt: skip


def test_rows_are_counted_by_what_can_be_done_to_them(acme):
    screens.held(acme, handler=HANDLER)
    screens.pending(factories.tenant("granite"), handler="gone.handler")
    seen = dry.look(draft(), VERBS["release"])
    assert (seen.count, seen.fit, seen.skipped, seen.items) == (2, 1, 1, 2)
    assert dict(seen.handlers) == {"Notification Handler": 1, "gone.handler": 1}
    assert acme.pk in seen.tenants


def test_it_counts_no_further_than_an_operation_goes(acme, monkeypatch):
    monkeypatch.setattr(dry, "LIMIT", 2)
    for number in range(3):
        screens.pending(acme, handler=HANDLER, dedup_key=str(number))
    seen = dry.look(draft(), VERBS["release"])
    assert (seen.count, seen.more) == (2, True)


def test_the_items_of_operations_are_never_among_them(acme):
    screens.pending(acme, handler=matching.KEY, dedup_key="1")
    assert dry.look(draft(), VERBS["cancel"]).count == 0


def test_an_age_is_that_of_the_moment_at_which_it_was_asked(acme):
    screens.pending(acme, handler=HANDLER)
    one = draft("older_than=1+min")
    assert matching.rows(one, limit=9).rows == ()
    one.asked_at = clock.now() + timedelta(minutes=5)
    assert len(matching.rows(one, limit=9).rows) == 1


def test_runs_whose_item_lives_already_are_not_promised(acme):
    for key in ("waits", "held", "gone"):
        screens.run(acme, handler=HANDLER, dedup_key=key, outcome="failed")
    screens.pending(acme, handler=HANDLER, dedup_key="waits")
    screens.held(acme, handler=HANDLER, dedup_key="held")  # is released
    one = draft()
    one.of, one.verb, one.max_id = "runs", REPEAT.name, None
    one.asked_at = clock.now() + timedelta(seconds=1)
    seen = dry.look(one, REPEAT)
    assert (seen.count, seen.fit, seen.living, seen.skipped) == (3, 2, 1, 0)
