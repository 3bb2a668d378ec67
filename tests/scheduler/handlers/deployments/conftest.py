"""What the handler is given."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from tests import factories
from workqueue.context import Context


@pytest.fixture
def ctx(transactional_db: None) -> Callable[..., Context]:
    def make(**values: Any) -> Context:
        platform, now = factories.platform(), clock.now()
        return Context(
            **{
                "key": "deployments.sweep",
                "tenant_id": platform.pk,
                "tenant": platform.slug,
                "dedup_key": "",
                "now": now,
                "slot": now,
                "trigger": "slot",
                "attempt": 1,
                "claim_id": clock.uuid7(),
                "deadline": now + timedelta(minutes=1),
                "stopping": lambda: False,
                "progress": lambda _: None,
                **values,
            }
        )

    return make
