"""Ticks by hand, who has an item then, and somebody's open transaction in their way."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.db import transaction

from audit import clock
from tests import databases
from tests.scheduler.timetable_for_tests import row
from workqueue.eligible import Call
from workqueue.enqueue import Enqueued, enqueue_tick
from workqueue.models import Tenant, WorkItem
from workqueue.registry import Handler

SLOT = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)


PLAIN = row("plain")


def tick(
    handler: Handler = PLAIN, *, trigger: str = "slot", tick_id: int = 1, **values: Any
) -> Enqueued:
    """One tick, in a transaction of its own."""
    try_last = values.pop("try_last", ())
    call = Call(row=handler, now=clock.now(), **values)
    with transaction.atomic():
        return enqueue_tick(
            call, trigger=trigger, tick_id=tick_id, slot=SLOT, try_last=try_last
        )


def items(**values: Any) -> list[str]:
    """Slugs of the tenants that have an item."""
    return sorted(
        WorkItem.objects.filter(**values).values_list("tenant_slug", flat=True)
    )


@contextmanager
def held(*tenants: Tenant, handler: str = "plain") -> Iterator[psycopg.Connection[Any]]:
    """Somebody's open transaction that has enqueued for these tenants."""
    with psycopg.connect(databases.url()) as session:
        for tenant in tenants:
            session.execute(
                "INSERT INTO workqueue_workitem (tenant_id, tenant_slug, handler, dedup_key, status, not_before,"
                " enqueued_at, trigger, time_limit_s, abandon, retry_attempts, retry_base_s, retry_cap_s, node,"
                " attempts, failures, recoveries, rerun, last_error, held_reason)"
                " VALUES (%s, %s, %s, '', 'pending', now(), now(), 'call', 1, 'requeue', 0, 1, 1, '', 0, 0, 0, false, '', '')",
                [tenant.pk, tenant.slug, handler],
            )
        yield session
        session.rollback()
