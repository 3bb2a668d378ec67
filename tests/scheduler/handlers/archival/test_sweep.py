from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session

from audit import retention
from audit.models import Event, NodeEvent, Run
from audit.partitions import existing
from scheduler.handlers.archival import apply_policies, store, sweep
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.operations.models import BulkOperation
from tests import factories
from tests.scheduler.handlers.archival.conftest import NOW
from workqueue.models import Tenant

type Make = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def platform_run(
    ctx: Make, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Any]:
    """Run the platform's item."""
    if not request.node.get_closest_marker("postgresql"):
        # A partition is detached outside transactions; these tests are inside one.
        monkeypatch.setattr(retention, "drop_partitions", lambda *, now: 0)
    return lambda: apply_policies.run(ctx(of=factories.platform()))


def test_runs_that_found_nothing_go_after_keep_empty_of_all_tenants(
    platform_run: Any, ran: Make
) -> None:
    other = factories.tenant("other")
    for values in ({}, {"tenant_id": other.pk, "tenant": "other"}):
        ran(days=8, seen=0, handler="archival.apply_policies", **values)
    kept = {
        ran(days=6, seen=0, handler="archival.apply_policies").id,
        ran(days=8, seen=1, handler="archival.apply_policies").id,
        ran(days=8, seen=0, handler="archival.apply_policies", outcome="failed").id,
        ran(days=8, seen=0, skipped=1, handler="archival.apply_policies").id,
    }

    outcome = platform_run()

    assert set(Run.objects.values_list("id", flat=True)) == kept
    assert outcome.details["swept"]["empty_runs"] == 2
    assert outcome.summary == "2 rows swept"


def test_a_tenants_own_item_sweeps_nothing(ctx: Make, ran: Make) -> None:
    ran(days=8, seen=0, handler="archival.apply_policies")

    apply_policies.run(ctx())

    assert Run.objects.count() == 1


def test_entries_of_execution_logs_are_kept_a_year(
    platform_run: Any, ctx: Make
) -> None:
    now = ctx().now
    for days in (364, 366):
        NodeEvent.objects.create(
            node_id=factories.node().id,
            node=f"{days}",
            kind="worker",
            type="note",
            at=now - timedelta(days=days),
        )

    platform_run()

    assert list(NodeEvent.objects.values_list("node", flat=True)) == ["364"]


def test_sessions_that_ended_and_old_bulk_operations_go(
    platform_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "BATCH", 2)
    for number in range(-1, 5):
        Session.objects.create(
            session_key=f"s{number}",
            expire_date=NOW - timedelta(seconds=number),
        )
    for days in (1, 91, 92, 93):
        BulkOperation.objects.create(
            tenant=factories.platform(), verb="cancel", of="items", at_most=1,
            expected=1, who="olga", why="x", asked_at=NOW - timedelta(days=days),
        )  # fmt: skip

    swept = platform_run().details["swept"]

    assert set(Session.objects.values_list("session_key", flat=True)) == {"s-1", "s0"}
    assert BulkOperation.objects.count() == 1
    assert (swept["sessions"], swept["operations"], swept["rows"]) == (4, 3, 7)


def test_rows_of_a_removed_tenant_are_archived_under_the_default_policy(
    platform_run: Any, policy: Make, event: Make, acme: Tenant, root: Path
) -> None:
    policy(tenant=None)
    event(tenant_id=987_654, tenant="gone")
    young = event(tenant_id=987_654, tenant="gone", days=3)
    mine = event()  # acme's own item does that

    outcome = platform_run()

    file = ArchiveFile.objects.get()
    assert (file.tenant_id, file.tenant, file.rows) == (987_654, "gone", 1)
    assert file.path.startswith("gone/events/")
    assert set(Event.objects.values_list("pk", flat=True)) == {young.pk, mine.pk}
    assert outcome.summary == "1 events of gone archived"


def test_files_of_a_removed_tenant_go_by_the_default_policy(
    platform_run: Any, policy: Make, event: Make, ctx: Make
) -> None:
    policy(tenant=None, archive_keep_days=10)
    event(tenant_id=987_654, tenant="gone")
    platform_run()
    ArchiveFile.objects.update(created_at=ctx().now - timedelta(days=12))

    platform_run()

    assert ArchiveFile.objects.get().deleted_at
    assert list(store.everything()) == []


def test_a_disabled_default_leaves_removed_tenants_alone(
    platform_run: Any, policy: Make, event: Make
) -> None:
    policy(tenant=None, is_enabled=False)
    event(tenant_id=987_654, tenant="gone")

    platform_run()

    assert Event.objects.count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_month_in_which_nothing_is_left_is_dropped(
    platform_run: Any, ctx: Make, policy: Make, ran: Make
) -> None:
    policy("runs")
    ran(days=200, lines=2)

    def months() -> set[str]:
        return {partition.name for partition in existing("audit_run")}

    before = months()
    apply_policies.run(ctx())
    platform_run()

    assert "audit_run_2026_05" in before
    assert "audit_run_2026_05" not in months()
    assert "audit_line_2026_05" not in {p.name for p in existing("audit_line")}
    assert not Run.objects.exists()
