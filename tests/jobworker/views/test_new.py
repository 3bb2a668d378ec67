"""Submitting by hand: the form of a type, who may, for whom, and what is refused."""

from typing import Any

import pytest
from django.test import Client

from audit.models import Change
from jobworker.models import Job
from tests import factories, screens
from tests.jobworker.screening import ended, pending
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db
FORM = "/admin/jobs/new/grow/"


def sent(**values: Any) -> dict[str, Any]:
    """A form filled in as it should be."""
    filled = {
        "p-name": "orion",
        "p-nodes": "3",
        "p-size": "large",
        "tenant": "acme",
        "priority": "0",
        "why": "CHG-7",
    }
    return {**filled, **values}


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_types_are_offered_with_purpose_and_tier_but_not_those_of_the_engine(
    boss: Client,
):
    html = text(boss.get("/admin/jobs/new/"))
    for words in (
        "Grow a cluster.",
        "heavy",
        "needs terraform",
        "poll-only",
        "one at a time",
    ):
        assert words in html
    assert "overdue" not in html


def test_the_form_has_each_parameter_with_its_sentence_range_and_default(
    boss: Client, acme: Tenant
):
    html = text(boss.get(FORM))
    for words in (
        "Name of the cluster.",
        "Enter lower-case letters. It must be given.",
        "Default 2. Enter a whole number from 1 to 100.",
        'name="p-nodes" value="2"',
        "<option selected>small</option>",
        'type="checkbox" id="p-keep"',
        'type="password" id="p-admin_password"',
        '<option value="acme"',
    ):
        assert words in html


def test_a_job_is_submitted_as_it_was_filled_in(boss: Client, acme: Tenant):
    response = boss.post(FORM, sent(**{"p-keep": "on", "priority": "-5"}))
    job = Job.objects.get()
    assert response["Location"] == f"/admin/jobs/{job.pk}/"
    assert (job.tenant, job.created_by, job.origin, job.priority) == (
        acme,
        "boss",
        "admin",
        -5,
    )
    assert job.params == {
        "name": "orion",
        "nodes": 3,
        "size": "large",
        "keep": True,
        "admin_password": "",
    }
    change = Change.objects.get(subject=f"job:{job.pk}")
    assert (change.verb, change.who, change.why) == ("submitted", "boss", "CHG-7")


def test_what_is_wrong_with_which_parameter_is_said_and_what_was_typed_is_kept(
    boss: Client, acme: Tenant
):
    response = boss.post(FORM, sent(**{"p-name": "ORION!", "p-nodes": "500"}))
    html = text(response)
    assert response.status_code == 400
    assert "2 values refused" in html.replace("\u00a0", " ")
    assert "“ORION!” cannot be used. Enter lower-case letters." in html
    assert "500 is above the range. Enter a whole number from 1 to 100." in html
    assert 'value="ORION!"' in html
    assert 'value="500"' in html
    assert "<option selected>large</option>" in html
    assert 'value="CHG-7"' in html
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("tenant", "", "Choose the tenant that it is for."),
        ("tenant", "nobody", "Choose the tenant that it is for."),
        ("tenant", "acme\x00", ""),
        ("priority", "101", "101 is above the range. Enter a number from -100 to 100."),
        ("priority", "high", "“high” is not a whole number."),
        ("why", "x" * 501, "Enter at most 500 characters."),
    ],
)
def test_the_other_fields_are_refused_with_a_sentence_too(
    boss: Client, acme: Tenant, field: str, value: str, said: str
):
    response = boss.post(FORM, sent(**{field: value}))
    if said:
        assert response.status_code == 400
        assert said in text(response)
    assert response.status_code < 500


def test_a_second_job_on_the_same_thing_is_refused_with_a_link_to_the_first(
    boss: Client, acme: Tenant
):
    first = pending(acme, lock="cluster:orion")
    response = boss.post(FORM, sent())
    assert response.status_code == 400
    html = text(response)
    assert "is locked by job" in html
    assert f'<a href="/admin/jobs/{first.pk}/">{first.pk}</a>' in html
    assert Job.objects.count() == 1


def test_a_tenants_staff_submits_for_its_own_tenant_only(acme: Tenant):
    factories.tenant("granite")
    carl = screens.staff(acme, "jobworker.submit_job", "jobworker.view_job")
    client = screens.signed_in(carl)
    html = text(client.get(FORM))
    assert '<option value="acme" selected' in html
    assert "granite" not in html
    assert client.post(FORM, sent(tenant="granite")).status_code == 400
    assert not Job.objects.exists()
    client.post(FORM, sent())
    assert Job.objects.get().tenant == acme


def test_a_viewer_is_refused(acme: Tenant):
    viewer = screens.staff(acme, "jobworker.view_job")
    client = screens.signed_in(viewer)
    assert client.get(FORM).status_code == 403
    assert client.post(FORM, sent()).status_code == 403
    # The permission alone does not make a viewer of the tenant an operator.
    held = screens.staff(acme, "jobworker.submit_job", role="viewer")
    assert screens.signed_in(held).post(FORM, sent()).status_code == 403
    assert not Job.objects.exists()


@pytest.mark.parametrize("type", ["sweep", "unknown", "__init__"])
def test_what_people_do_not_submit_has_no_form(boss: Client, acme: Tenant, type: str):
    assert boss.get(f"/admin/jobs/new/{type}/").status_code == 404


def test_submit_again_fills_in_what_the_job_had_but_no_secret(
    boss: Client, acme: Tenant
):
    job = ended(
        acme,
        params={"name": "vega", "nodes": 7, "keep": True, "admin_password": "hunter22"},
    )
    html = text(boss.get(f"{FORM}?again={job.pk}"))
    for words in ('value="vega"', 'value="7"', 'name="p-keep" value="on" checked'):
        assert words in html
    assert "hunter22" not in html


def test_submit_again_of_another_tenants_job_shows_nothing_of_it(acme: Tenant):
    theirs = ended(factories.tenant("granite"), params={"name": "vega", "nodes": 7})
    carl = screens.staff(acme, "jobworker.submit_job", "jobworker.view_job")
    html = text(screens.signed_in(carl).get(f"{FORM}?again={theirs.pk}"))
    assert "vega" not in html
