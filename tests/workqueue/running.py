"""What tests of worker processes put into the queue and wait for."""

from datetime import timedelta
from typing import Any

from audit.models import Run
from tests import factories
from tests.waiting import wait_until
from workqueue.models import Tenant, WorkItem

KEEP_ALIVE = timedelta(seconds=2)  # of worker processes


def enqueue(
    tenant: Tenant, does: str = "", handler: str = "act", **values: Any
) -> WorkItem:
    return factories.item(
        tenant,
        handler,
        dedup_key=does,
        tenant_slug=tenant.slug,
        trigger="call",
        **values,
    )


def runs(count: int, within: float = 20) -> list[Run]:
    wait_until(
        lambda: Run.objects.count() >= count, within=within, what=f"{count} runs"
    )
    return list(Run.objects.order_by("finished_at"))
