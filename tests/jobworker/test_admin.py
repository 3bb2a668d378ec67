"""Deployments and images: what is there, by which job, and that no secret is shown."""

from typing import Any

import pytest
from django.test import Client

from audit import clock
from audit.models import Change
from jobworker.models import Deployment, Image
from tests import factories, screens
from tests.jobworker import rows, screening
from workqueue.models import Membership, Tenant

pytestmark = pytest.mark.django_db
RIGHTS = (
    "jobworker.view_deployment",
    "jobworker.change_deployment",
    "jobworker.submit_job",
)


def deployment(of: Tenant, **values: Any) -> Deployment:
    now = clock.now()
    defaults: dict[str, Any] = {
        "tenant_slug": of.slug,
        "kind": "cluster",
        "name": "orion",
        "module": "offline",
        "variables": {"nodes": 2},
        "outputs": {"nodes": ["orion-0"]},
        "secret_outputs": '{"kubeconfig": "apiVersion: very-secret"}',
        "status": "active",
        "last_job": clock.uuid7(),
        "created_at": now,
        "created_by": "anna",
        "changed_at": now,
    }
    return Deployment.objects.create(tenant=of, **{**defaults, **values})


def text(response: Any) -> str:
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def at(row: Any) -> str:
    return f"/admin/jobworker/{row._meta.model_name}/{row.pk}/change/"


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


def test_outputs_are_shown_but_of_the_sensitive_ones_only_the_name(boss, acme):
    html = text(boss.get(at(deployment(acme))))
    assert "orion-0" in html
    assert "kubeconfig <code>••••</code>" in html
    assert "very-secret" not in html


def test_secrets_that_no_key_opens_take_no_page_along(boss, acme, settings):
    row = deployment(acme)
    rows.lose_key(settings)

    assert "orion" in text(boss.get("/admin/jobworker/deployment/"))
    html = text(boss.get(at(row)))
    assert "orion-0" in html
    assert "put the old key back behind the new one" in html
    assert boss.post(at(row), {"protected": "on"}).status_code == 302
    assert Deployment.objects.get().protected


def test_a_failed_one_says_why_to_those_who_may_see_its_job(boss, acme):
    job = screening.pending(acme, status="failed", error="worker jobs-1 stopped")
    row = deployment(acme, status="failed", last_job=job.pk)
    assert "worker jobs-1 stopped" in text(boss.get(at(row)))
    viewer = screens.signed_in(screens.staff(acme, "jobworker.view_deployment"))
    assert "worker jobs-1 stopped" not in text(viewer.get(at(row)))
    Deployment.objects.update(status="active")
    assert "worker jobs-1 stopped" not in text(boss.get(at(row)))


def test_the_list_links_to_the_last_job_and_costs_the_same_for_fifty(
    boss, acme, django_assert_max_num_queries
):
    job = screening.pending(acme)
    made = [
        deployment(acme, name=f"orion-{n}", last_job=None if n else job.pk)
        for n in range(50)
    ]
    with django_assert_max_num_queries(12):
        html = text(boss.get("/admin/jobworker/deployment/"))
    assert f'href="/admin/jobs/{made[0].last_job}/"' in html


def test_a_job_that_is_no_longer_kept_is_named_without_a_link(boss, acme):
    row = deployment(acme)
    html = text(boss.get("/admin/jobworker/deployment/"))
    assert f"job {str(row.last_job)[:8]}…" in html
    assert f"/admin/jobs/{row.last_job}/" not in html


def test_destroy_leads_to_the_form_of_its_job_filled_in(boss, acme):
    html = text(boss.get(at(deployment(acme))))
    address = "/admin/jobs/new/cluster_destroy/?tenant=acme&amp;name=orion"
    assert address in html
    form = text(boss.get(address.replace("&amp;", "&")))
    assert 'name="p-name" value="orion"' in form
    assert '<option value="acme" selected' in form
    gone = deployment(acme, name="gone", status="destroyed")
    assert "nothing is left of it" in text(boss.get(at(gone)))


def test_until_when_it_is_kept_is_changed_by_the_tenants_administrator_and_recorded(
    acme,
):
    row = deployment(acme)
    client = screens.signed_in(
        screens.staff(acme, *RIGHTS, role=Membership.Role.ADMINISTRATOR)
    )
    sent = {
        "protected": "on",
        "delete_after_0": "2030-01-01",
        "delete_after_1": "12:00",
    }
    assert client.post(at(row), sent).status_code == 302
    row.refresh_from_db()
    assert row.protected
    assert row.delete_after
    change = Change.objects.get()
    assert change.tenant_id == acme.pk
    assert change.new["protected"] is True
    assert set(change.new) == {"protected", "delete_after"}


def test_an_operator_reads_and_another_tenants_staff_does_not_even_see(acme):
    row = deployment(acme)
    operator = screens.signed_in(screens.staff(acme, *RIGHTS))
    html = text(operator.get(at(row)))
    assert 'name="protected"' not in html
    assert operator.post(at(row), {"protected": "on"}).status_code == 403
    stranger = screens.signed_in(screens.staff(factories.tenant("granite"), *RIGHTS))
    assert stranger.get(at(row)).status_code == 404


def test_nobody_adds_or_deletes_by_hand(boss, acme):
    row = deployment(acme)
    assert boss.get("/admin/jobworker/deployment/add/").status_code == 403
    assert boss.get(f"/admin/jobworker/deployment/{row.pk}/delete/").status_code == 403


def test_an_image_shows_its_files_and_its_build(boss, acme):
    image = Image.objects.create(
        tenant=acme,
        tenant_slug="acme",
        name="golden",
        version="2026.11",
        build="golden.file.rootfs",
        provider="packer.file",
        files=[{"path": "web1.img", "size": 4096}],
        source_job=screening.pending(acme).pk,
        created_at=clock.now(),
        created_by="anna",
    )
    html = text(boss.get(at(image)))
    assert "web1.img" in html
    assert f'href="/admin/jobs/{image.source_job}/"' in html
    assert boss.post(at(image), {"name": "x"}).status_code == 403
