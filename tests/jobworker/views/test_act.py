"""Cancel and adopt: asked first, with a reason, and refused to whom they are refused."""

import pytest
from django.test import Client

from audit.models import Change, Run
from jobworker.models import Job
from tests import factories, screens
from tests.jobworker.screening import ended, pending, running
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db


def at(job: Job, verb: str) -> str:
    return f"/admin/jobs/{job.pk}/{verb}/"


def test_cancelling_one_that_waits_ends_it_at_once(boss: Client, acme: Tenant):
    job = pending(acme)
    asked = boss.get(at(job, "cancel")).content.decode()
    assert "it is cancelled at once" in asked
    assert "Leave it as it is" in asked
    boss.post(at(job, "cancel"), {"why": "wrong size"})
    job.refresh_from_db()
    assert job.status == Job.Status.CANCELLED
    assert Run.objects.get().outcome == "cancelled"
    assert Change.objects.get(subject=f"job:{job.pk}").why == "wrong size"


def test_cancelling_one_that_runs_tells_it_to_stop(boss: Client, acme: Tenant):
    job = running(acme)
    asked = boss.get(at(job, "cancel")).content.decode()
    assert "SIGINT to the whole process group" in asked
    boss.post(at(job, "cancel"), {"why": "wrong size"})
    job.refresh_from_db()
    assert job.status == Job.Status.RUNNING
    assert job.cancel_requested_by == "boss"
    page = boss.get(f"/admin/jobs/{job.pk}/").content.decode()
    assert "It is told to stop" in page
    assert "Cancel…" not in page


def test_without_a_reason_nothing_is_done(boss: Client, acme: Tenant):
    job = pending(acme)
    response = boss.post(at(job, "cancel"), {"why": " "})
    assert response.status_code == 400
    job.refresh_from_db()
    assert job.status == Job.Status.PENDING


def test_one_that_has_ended_is_left_alone(boss: Client, acme: Tenant):
    job = ended(acme)
    response = boss.post(at(job, "cancel"), {"why": "late"}, follow=True)
    assert "It has ended already" in response.content.decode()
    assert not Change.objects.exists()


def test_adopting_submits_a_job_that_only_follows(boss: Client, acme: Tenant):
    job = ended(
        acme, type="follow_export", params={}, external_ref={"what": "export 7"}
    )
    asked = boss.get(at(job, "adopt")).content.decode()
    assert "export 7" in asked
    assert "It starts nothing there" in asked
    response = boss.post(at(job, "adopt"), {"why": "worker died"})
    heir = Job.objects.get(adopts=job)
    assert response["Location"] == f"/admin/jobs/{heir.pk}/"
    assert heir.external_ref == {"what": "export 7"}
    assert Change.objects.get(subject=f"job:{heir.pk}").verb == "adopted"


def test_what_cannot_be_adopted_says_why(boss: Client, acme: Tenant):
    response = boss.post(at(ended(acme), "adopt"), {"why": "x"}, follow=True)
    assert (
        "It began nothing outside that could be followed" in response.content.decode()
    )


def test_what_this_release_refuses_of_it_is_said_too(boss: Client, acme: Tenant):
    job = ended(
        acme,
        type="follow_export",
        params={"gone": 1},
        external_ref={"what": "export 7"},
    )
    response = boss.post(at(job, "adopt"), {"why": "x"}, follow=True)
    assert "It was not adopted. gone: " in response.content.decode()
    assert not Job.objects.filter(adopts=job).exists()


def test_who_may_not_is_refused_and_another_tenants_job_is_not_there(acme: Tenant):
    rights = ("jobworker.view_job", "jobworker.cancel_job", "jobworker.adopt_job")
    viewer = screens.signed_in(screens.staff(acme, *rights, role="viewer"))
    operator = screens.signed_in(screens.staff(acme, *rights))
    mine, theirs = pending(acme), pending(factories.tenant("granite"))
    for verb in ("cancel", "adopt"):
        assert viewer.post(at(mine, verb), {"why": "x"}).status_code == 403
        assert operator.post(at(theirs, verb), {"why": "x"}).status_code == 404
    assert Job.objects.pending().count() == 2
