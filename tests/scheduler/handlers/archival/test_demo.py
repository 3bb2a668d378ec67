from pathlib import Path

import pytest

from audit import clock
from audit.models import Run
from scheduler.handlers.archival import apply_policies
from scheduler.handlers.archival.demo import demo
from scheduler.handlers.archival.models import ArchivalPolicy, ArchiveFile
from tests import factories
from workqueue.context import Context


@pytest.mark.django_db
def test_the_demo_leaves_archival_real_work(root: Path) -> None:
    tenants = [factories.tenant("one"), factories.tenant("two")]

    demo(tenants, smtp_host="127.0.0.1", smtp_port=25)

    assert ArchivalPolicy.objects.filter(tenant__in=tenants).count() == 2
    for tenant in tenants:
        now = clock.now()
        outcome = apply_policies.run(
            Context(
                key="archival.apply_policies",
                tenant_id=tenant.pk,
                tenant=tenant.slug,
                dedup_key="",
                now=now,
                slot=now,
                trigger="operator",
                attempt=1,
                claim_id=clock.uuid7(),
                deadline=now,
                stopping=lambda: False,
                progress=lambda _: None,
            )
        )
        assert outcome.changed > 100
    assert ArchiveFile.objects.filter(tenant="one").count() >= 2


@pytest.mark.django_db
def test_a_second_start_of_the_demo_adds_nothing(root: Path) -> None:
    tenants = [factories.tenant("one")]
    demo(tenants)
    before = (Run.objects.count(), ArchivalPolicy.objects.count())

    demo(tenants)

    assert (Run.objects.count(), ArchivalPolicy.objects.count()) == before
