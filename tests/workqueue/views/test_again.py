"""A run that failed is retried from its own page, with a reason."""

from typing import Any

import pytest
from django.test import Client

from audit.models import Change
from tests import factories, screens
from workqueue.models import Membership, Tenant, WorkItem

pytestmark = pytest.mark.django_db
RIGHTS = ("audit.view_run", "workqueue.retry_item")
HANDLER = "notifications.deliver"


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.status_code
    return response.content.decode()


def test_a_failed_run_offers_it_and_enqueues_its_item(boss: Client, acme: Tenant):
    run = screens.run(acme, handler=HANDLER, outcome="failed", error="refused")
    page = f"/admin/run/{run.id}/"
    assert "Retry…" in text(boss.get(page))
    assert "Retry this run?" in text(boss.get(f"{page}retry/"))
    assert "Say why" in text(boss.post(f"{page}retry/", {"why": ""}), 400)
    said = text(boss.post(f"{page}retry/", {"why": "mail is back"}, follow=True))
    assert f"Retried: enqueued as item {WorkItem.objects.get().pk}." in said
    assert Change.objects.get().why == "mail is back"
    again = text(boss.post(f"{page}retry/", {"why": "once more"}, follow=True))
    assert "Nothing was enqueued" in again


def test_a_run_that_went_well_does_not(boss: Client, acme: Tenant):
    run = screens.run(acme, handler=HANDLER)
    assert "Retry…" not in text(boss.get(f"/admin/run/{run.id}/"))


def test_viewers_and_other_tenants_cannot(acme: Tenant):
    run = screens.run(acme, handler=HANDLER, outcome="failed")
    address = f"/admin/run/{run.id}/retry/"
    viewer = screens.staff(acme, *RIGHTS, role=Membership.Role.VIEWER)
    assert "Retry…" not in text(screens.signed_in(viewer).get(f"/admin/run/{run.id}/"))
    assert screens.signed_in(viewer).post(address, {"why": "x"}).status_code == 403
    other = screens.staff(factories.tenant("other"), *RIGHTS)
    assert screens.signed_in(other).post(address, {"why": "x"}).status_code == 404
    assert not WorkItem.objects.exists()
