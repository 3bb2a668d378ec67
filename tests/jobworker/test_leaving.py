"""A tenant stays while something of it would be left that nobody could end."""

from typing import Any

import pytest
from django.test import Client

from audit import clock
from jobworker.models import Deployment, Job
from tests import factories
from tests.jobworker import rows
from workqueue import tenancy
from workqueue.exceptions import StillNeeded
from workqueue.models import Tenant


def deployed(of: Tenant, **values: object) -> Deployment:
    given = {"kind": "cluster", "name": "demo", "module": "offline", "created_by": "t"}
    now = dict.fromkeys(("created_at", "changed_at"), clock.now())
    return Deployment.objects.create(
        **{"tenant": of, "tenant_slug": of.slug, **given, **now, **values}
    )


def test_what_runs_and_what_is_deployed_is_named_and_keeps_the_tenant(
    acme: Tenant,
) -> None:
    deployed(acme)
    factories.job(acme)
    with pytest.raises(StillNeeded) as refused:
        tenancy.remove(acme, who="ann", origin="admin", why="over")
    assert "It still has cluster demo: destroy them first." in str(refused.value)
    assert "1 of its jobs has not ended" in str(refused.value)
    acme.refresh_from_db()
    assert acme.is_active


def test_secrets_that_no_key_opens_hide_nothing_that_keeps_the_tenant(
    acme: Tenant, settings: Any
) -> None:
    deployed(acme)
    rows.lose_key(settings)
    with pytest.raises(StillNeeded, match=r"It still has cluster demo"):
        tenancy.remove(acme, who="ann", origin="admin", why="over")


def test_a_tenant_whose_jobs_ended_and_whose_deployments_are_gone_is_removed(
    acme: Tenant,
) -> None:
    deployed(acme, status="destroyed")
    Job.objects.filter(pk=factories.job(acme).pk).update(status="succeeded")
    tenancy.remove(acme, who="ann", origin="admin", why="over")
    assert not Tenant.objects.filter(pk=acme.pk).exists()


def test_the_page_says_it_before_anything_is_typed_and_refuses_all_the_same(
    acme: Tenant, client: Client
) -> None:
    deployed(acme)
    client.force_login(factories.superuser())
    page = f"/admin/workqueue/tenant/{acme.pk}/remove/"
    assert "destroy them first" in client.get(page).content.decode()
    answer = client.post(page, {"slug": acme.slug, "why": "over"})
    assert answer.status_code == 400
    assert Tenant.objects.filter(pk=acme.pk).exists()
