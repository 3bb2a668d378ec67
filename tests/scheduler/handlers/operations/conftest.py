"""What the tests of bulk operations share: a tenant, an operator, an attempt by hand."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit import clock
from scheduler.handlers.operations import bulk
from scheduler.handlers.operations.models import BulkOperation
from tests import factories, screens
from workqueue.context import Context, Outcome
from workqueue.models import Tenant

HANDLER = "notifications.deliver"


@pytest.fixture
def acme(db: None) -> Tenant:
    return factories.tenant("acme")


@pytest.fixture
def boss(db: None) -> Client:
    return screens.signed_in(factories.superuser("boss"))


@pytest.fixture
def carry_out() -> Callable[..., Outcome]:
    """Run an operation's item here: carry_out(operation), carry_out(operation, stopping=...)."""

    def run(operation: BulkOperation, **values: Any) -> Outcome:
        now = clock.now()
        context = Context(
            **{
                "key": "operations.bulk",
                "tenant_id": operation.tenant_id,
                "tenant": operation.tenant.slug,
                "dedup_key": str(operation.pk),
                "now": now,
                "slot": None,
                "trigger": "operator",
                "attempt": 1,
                "claim_id": clock.uuid7(),
                "deadline": now + timedelta(hours=1),
                "stopping": lambda: False,
                "progress": lambda _: None,
                **values,
            }
        )
        return bulk.run(context)

    return run
