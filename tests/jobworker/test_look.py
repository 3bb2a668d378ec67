"""One statement per pass tells caps, pauses, cancels and whether anything waits."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import clock
from jobworker import caps
from jobworker.look import look
from jobworker.models import Job
from tests import factories
from workqueue import pauses, policy
from workqueue.models import Setting, Tenant

Submit = Callable[..., Job]


def test_all_of_it_comes_by_one_statement(submitted: Submit, acme: Tenant) -> None:
    me = factories.node("jobworker")
    mine = factories.running_job(acme, me, cancel_requested_at=clock.now())
    factories.running_job(
        acme, factories.node("jobworker"), cancel_requested_at=clock.now()
    )
    submitted()
    policy.save(
        {"heavy": 5}, who="t", origin="command", why="", declaration=caps.DECLARATION
    )
    pauses.pause(scope="tenant", tenant=acme, reason="r", who="t", origin="command")
    with CaptureQueriesContext(connection) as seen:
        found = look(me.id)
    assert len(seen) == 1
    assert (found.version, found.caps.tiers["heavy"], found.waiting) == (1, 5, True)
    assert found.cancelled == {mine.claim_id}
    assert found.live.paused_tenants() == {acme.id}


def test_nothing_anywhere_means_the_defaults(transactional_db: None) -> None:
    found = look(factories.node("jobworker").id)
    assert (found.version, found.waiting, found.cancelled) == (0, False, frozenset())
    assert found.caps.total == 3


@pytest.mark.parametrize(
    "values", [[], "x", {"total": "many"}, {"total": 10**40}, None]
)
def test_no_stored_value_stops_a_look(transactional_db: None, values: Any) -> None:
    Setting.objects.create(
        name="Job Worker",
        version=1,
        values=values,
        at=clock.now(),
        who="sql",
        origin="x",
    ) if values is not None else None
    assert 1 <= look(factories.node("jobworker").id).caps.total <= 500
