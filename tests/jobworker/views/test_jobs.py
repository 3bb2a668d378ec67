"""The list of jobs: what it shows of each, what it can be asked, and to whom."""

from datetime import timedelta

import pytest
from django.test import Client

from audit import clock
from jobworker.models import Job
from tests import factories, screens
from tests.jobworker.screening import ended, pending, running, worker
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db
LIST = "/admin/jobs/"


def text(client: Client, address: str = LIST) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return " ".join(response.content.decode().split())


def test_a_job_is_shown_with_its_subject_state_tenant_tier_and_progress(boss, acme):
    job = running(acme)
    html = text(boss)
    assert f'<a href="/admin/jobs/{job.pk}/">grow</a>' in html
    for words in (
        "cluster orion",
        "Running",
        "acme",
        "heavy",
        "62 %",
        "26 min",
    ):
        assert words in html


def test_one_that_waits_says_why(boss, acme):
    pending(acme)
    assert "no job worker is alive" in text(boss)
    worker()
    assert "starts with the next pass" in text(boss)


def test_one_whose_worker_lives_but_which_gives_no_sign_is_shown_so(boss, acme):
    running(acme, progress_at=clock.now() - timedelta(minutes=12, seconds=6))
    assert "alive, silent for 12 min" in text(boss)


def test_one_whose_worker_is_not_heard_of_is_not_called_alive(boss, acme):
    old = clock.now() - timedelta(minutes=12)
    running(acme, progress_at=old, heartbeat_at=old)
    html = text(boss)
    assert "alive, silent" not in html
    assert "no heartbeat of its worker for 12 min" in html


def test_one_that_failed_shows_its_error_whole(boss, acme):
    ended(acme, error="Error: quota exceeded\nnode 1")
    assert "quota exceeded" in text(boss)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("status=pending", "waits"),
        ("status=running", "runs"),
        ("status=failed", "broke"),
        ("tier=light", "exports"),
        ("type=follow_export", "exports"),
        ("tenant=granite", "other"),
        ("text=quota", "broke"),
        ("text=broke", "broke"),
        ("since=1+min&status=pending", "waits"),
    ],
)
def test_the_list_is_asked_over_the_address(boss, acme, asked, found):
    pending(acme, subject="waits")
    running(acme, subject="runs")
    ended(acme, subject="broke", error="the quota is used up")
    ended(
        acme,
        Job.Status.SUCCEEDED,
        subject="exports",
        type="follow_export",
        tier="light",
    )
    ended(factories.tenant("granite"), Job.Status.CANCELLED, subject="other")
    html = text(boss, f"{LIST}?{asked}")
    subjects = {"waits", "runs", "broke", "exports", "other"}
    assert {one for one in subjects if f'class="sub">{one}<' in html} == {found}


def test_pages_follow_each_other_without_a_gap(boss, acme):
    now = clock.now()
    for n in range(60):
        pending(acme, subject=f"n{n:02}", created_at=now - timedelta(seconds=n))
    first = boss.get(LIST)
    assert len(first.context["rows"]) == 50
    second = boss.get(f"{LIST}{first.context['older']}")
    seen = [row.subject for row in (*first.context["rows"], *second.context["rows"])]
    assert seen == [f"n{n:02}" for n in range(60)]


def test_a_tenants_staff_sees_its_own_jobs_only(acme):
    pending(acme, subject="mine")
    pending(factories.tenant("granite"), subject="theirs")
    carl = screens.staff(acme, "jobworker.view_job")
    html = text(screens.signed_in(carl))
    assert "mine" in html
    assert "theirs" not in html
    assert "New job" not in html


def test_without_the_permission_there_is_no_list(acme):
    assert screens.signed_in(screens.staff(acme)).get(LIST).status_code == 403


def test_all_that_match_are_downloaded(boss, acme):
    ended(acme, error="the quota is used up")
    pending(acme)
    response = boss.get("/admin/jobs/export/jsonl/?status=failed")
    (line,) = b"".join(response.streaming_content).decode().splitlines()
    assert '"error": "the quota is used up"' in line
    assert '"params"' not in line


def test_a_list_costs_the_same_however_many_jobs_it_shows(
    boss, acme, django_assert_max_num_queries
):
    for n in range(50):
        pending(acme, subject=f"n{n}")
    worker()
    with django_assert_max_num_queries(16):
        boss.get(LIST)


def test_an_empty_list_says_what_a_job_is(boss):
    html = text(boss)
    assert "Nobody has submitted a job yet" in html
    assert "New job" in html


def test_the_tenant_of_a_removed_one_can_still_be_asked_for(boss, acme: Tenant):
    ended(acme, subject="mine")
    Tenant.objects.filter(pk=acme.pk).delete()
    assert "mine" in text(boss, f"{LIST}?tenant=acme")
