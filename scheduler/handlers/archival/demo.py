"""demo: a history that is old enough, so that the first archival run has real work."""

from collections.abc import Iterable
from datetime import timedelta

from audit import clock, ledger
from scheduler.handlers.archival.archivable import types
from scheduler.handlers.archival.defaults import make_default_policies
from scheduler.handlers.archival.models import ArchivalPolicy
from workqueue.models import Tenant

KEEP_DAYS = 30
OLDEST_DAYS = 75  # three months of files
RUNS_A_DAY = 8


def demo(tenants: Iterable[Tenant], **_: object) -> None:
    """Make policies and old runs for the demo's tenants. What exists stays as it is."""
    make_default_policies()
    for tenant in tenants:
        ArchivalPolicy.objects.get_or_create(
            tenant=tenant, record_type="runs", defaults={"keep_days": KEEP_DAYS}
        )
        _old_runs(tenant)


def _old_runs(tenant: Tenant) -> None:
    """Runs as they might have been, one attempt each, some of them failed."""
    finished = clock.now() - timedelta(days=KEEP_DAYS + 1)
    before = types()["runs"].count(tenant_id=tenant.pk, before=finished, at_most=1)
    if before:
        return  # a second start of the demo
    runs = []
    for number in range((OLDEST_DAYS - KEEP_DAYS) * RUNS_A_DAY):
        ended = finished - timedelta(hours=24 / RUNS_A_DAY * number)
        began = ended - timedelta(milliseconds=180 + number % 7 * 40)
        failed = number % 29 == 0
        runs.append(
            ledger.RunRecord(
                id=clock.uuid7(began),
                tenant_id=tenant.pk,
                tenant=tenant.slug,
                handler="notifications.deliver",
                trigger="slot",
                slot=began,
                enqueued_at=began,
                claimed_at=began,
                started_at=began,
                finished_at=ended,
                node="demo, 1",
                attempt=1,
                outcome="failed" if failed else "succeeded",
                seen=3,
                changed=0 if failed else 3,
                failed=3 if failed else 0,
                summary="" if failed else "3 sent",
                error="connection refused by 127.0.0.1:25" if failed else "",
                line_count=1,
                transcript=f"{began.isoformat()} INFO 3 notifications are due",
            )
        )
    for start in range(0, len(runs), 200):
        ledger.record(runs[start : start + 200], finish_id=clock.uuid7())
