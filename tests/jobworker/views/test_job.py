"""The page of a job: progress, facts, signs of trouble, live output, what can be done."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit import clock, transcript
from audit.transcript import LineRow
from jobworker.models import Job
from tests import factories, screens
from tests.jobworker.screening import ended, pending, running, worker
from workqueue.models import Node, Tenant

pytestmark = pytest.mark.django_db


def text(client: Client, job: Job, query: str = "") -> str:
    response = client.get(f"/admin/jobs/{job.pk}/{query}")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def lines(job: Job, *texts: str, first: int = 1) -> None:
    assert job.claim_id
    at = clock.now()
    transcript.store(
        [LineRow(job.claim_id, first + n, at, 20, said) for n, said in enumerate(texts)]
    )


def follow(client: Client, job: Job, *, after: int, at: int = 0) -> Any:
    return client.get(f"/admin/jobs/{job.pk}/lines/?follow=1&after={after}&at={at}")


def test_a_running_job_shows_progress_phases_and_facts(boss: Client, acme: Tenant):
    job = running(acme, params={"name": "orion", "admin_password": "hunter22"})
    html = text(boss, job)
    for words in (
        "for 26 min on app-1, 31.",
        str(job.pk),
        "tier heavy",
        "62 <small>%",
        "plan</span>",
        "41 s",
        "limit 2 h",
        "by operator",
        "Grow a cluster.",
        "name=orion",
        "SIGINT to the whole process group",
        "the job fails and is not started again",
        "nothing begun outside",
        "Cancel…",
    ):
        assert words in html
    assert "hunter22" not in html


def test_what_waits_says_why_and_has_a_page_that_follows(boss: Client, acme: Tenant):
    worker(caps={"heavy": 0, "total": 3})
    job = pending(acme)
    html = text(boss, job)
    assert "the cap heavy is 0 on app-1" in html
    assert 'hx-trigger="every 500ms"' in html
    assert (
        follow(boss, job, after=0, at=int(clock.now().timestamp())).status_code == 204
    )


def test_a_job_that_gives_no_sign_says_so_on_top(boss: Client, acme: Tenant):
    job = running(acme, progress_at=clock.now() - timedelta(minutes=12, seconds=3))
    html = text(boss, job)
    assert "Alive, silent for 12 min." in html
    assert "silent for the last 12 min" in html


@pytest.mark.parametrize(
    ("minutes", "head"), [(1, "It waits to go on."), (12, "Alive, silent for 12 min.")]
)
def test_a_job_that_waits_to_wake_up_says_for_what(
    boss: Client, acme: Tenant, minutes: int, head: str
):
    sign = clock.now() - timedelta(minutes=minutes, seconds=3)
    job = running(acme, progress_at=sign)
    node = worker(waking=[str(job.claim_id)], usable=2)
    Job.objects.update(node_id=node.id)
    html = text(boss, job)
    assert head in html
    says = "It has slept and waits until another job ends or sleeps: the pool serves 2."
    assert says in html
    Node.objects.update(report={**node.report, "waking": []})
    assert "It has slept" not in text(boss, job)


def test_a_job_whose_worker_is_gone_does_not_look_alive(boss: Client, acme: Tenant):
    job = running(acme, heartbeat_at=clock.now() - timedelta(minutes=3))
    html = text(boss, job)
    assert "No heartbeat of its worker for 3 min." in html
    assert "Alive, silent" not in html


def test_output_is_followed_from_before_the_claim_until_the_end_without_a_gap(
    boss: Client, acme: Tenant
):
    job = pending(acme)
    assert "Its lines appear here once it has begun" in text(boss, job)
    now = clock.now()
    Job.objects.filter(pk=job.pk).update(
        status=Job.Status.RUNNING,
        claim_id=clock.uuid7(now),
        node_id=clock.uuid7(),
        started_at=now,
        heartbeat_at=now,
    )
    job.refresh_from_db()
    lines(job, "one", "two")
    first = follow(boss, job, after=0)
    assert 'id="L1"' in first.content.decode()
    assert "after=2" in first.content.decode()
    lines(job, "three", first=3)
    Job.objects.filter(pk=job.pk).update(
        status=Job.Status.SUCCEEDED, finished_at=now, line_count=3
    )
    last = follow(boss, job, after=2)
    html = last.content.decode()
    assert last.status_code == 286
    assert 'id="L3"' in html
    assert 'id="L2"' not in html
    for part in (
        "lead",
        "job-tools",
        "signs",
        "progress",
        "facts",
        "result",
        "logcount",
    ):
        assert f'id="{part}" ' in html or f'id="{part}"' in html
    assert "Succeeded" in html
    assert "Cancel…" not in html


def test_how_late_its_lines_are_stored_is_said(boss: Client, acme: Tenant):
    job = running(acme, output_lag_ms=200)
    lines(job, "one")
    assert "1 line, stored 200 ms after they were written" in text(boss, job)


def test_lines_are_looked_for_linked_and_downloaded(boss: Client, acme: Tenant):
    job = running(acme)
    lines(job, "first", "second <b>", "third")
    found = boss.get(f"/admin/jobs/{job.pk}/lines/?tail=1&text=second").content.decode()
    assert "second &lt;b&gt;" in found
    assert "third" not in found
    assert f"/admin/jobs/{job.pk}/lines/?follow=1" in text(boss, job)
    response = boss.get(f"/admin/jobs/{job.pk}/transcript/")
    file = b"".join(response.streaming_content).decode()
    assert file.splitlines()[0].startswith("# grow cluster orion for acme, job ")
    assert file.splitlines()[2].endswith("INFO second <b>")


def test_the_end_shows_result_error_and_the_run_in_the_ledger(
    boss: Client, acme: Tenant
):
    job = ended(
        acme,
        error="Error: quota exceeded",
        error_code="provider",
        result={"nodes": ["orion-0"], "token": "s3cr3t-value"},
    )
    html = text(boss, job)
    assert "Error: quota exceeded" in html
    assert "<code>provider</code>" in html
    assert "orion-0" in html
    assert "s3cr3t-value" not in html
    assert f'href="/admin/run/{job.claim_id}/"' in html
    run = boss.get(f"/admin/run/{job.claim_id}/").content.decode()
    assert f'href="/admin/jobs/{job.pk}/"' in run
    assert "Job Logs" in run


def test_a_job_that_ended_by_itself_says_of_nothing_that_it_goes_on(
    boss: Client, acme: Tenant
):
    ref = {"what": "export export-ami-0abc"}
    for code, status in (("told", "failed"), ("cancelled", "cancelled")):
        values = {"external_ref": ref, "error_code": code}
        html = text(boss, ended(acme, status, type="follow_export", **values))
        assert "may go on" not in html


def test_a_failed_job_that_can_be_followed_offers_to_adopt(boss: Client, acme: Tenant):
    ref = {"what": "export export-ami-0abc", "region": "eu-north-1"}
    job = ended(acme, type="follow_export", external_ref=ref)
    html = text(boss, job)
    assert "What it began outside may go on" in html
    assert "export export-ami-0abc, region eu-north-1" in html
    assert f"/admin/jobs/{job.pk}/adopt/" in html
    assert "/adopt/" not in text(boss, ended(acme))


def test_an_heir_and_what_it_follows_link_to_each_other(boss: Client, acme: Tenant):
    job = ended(acme, type="follow_export", external_ref={"what": "export"})
    heir = pending(acme, type="follow_export", adopts=job)
    assert f'href="/admin/jobs/{heir.pk}/"' in text(boss, job)
    html = text(boss, heir)
    assert f'href="/admin/jobs/{job.pk}/"' in html
    assert "it starts nothing" in html


def test_a_reader_is_shown_only_the_buttons_that_work(acme: Tenant):
    job = running(acme)
    viewer = screens.signed_in(screens.staff(acme, "jobworker.view_job", role="viewer"))
    html = text(viewer, job)
    for words in ("Cancel…", "Submit again…", "Live output"):
        assert words not in html
    assert viewer.get(f"/admin/jobs/{job.pk}/lines/").status_code == 403


def test_another_tenants_job_does_not_exist(acme: Tenant):
    theirs = running(factories.tenant("granite"))
    client = screens.signed_in(
        screens.staff(
            acme, "jobworker.view_job", "audit.view_transcript", "audit.export"
        )
    )
    for part in ("", "lines/", "transcript/"):
        assert client.get(f"/admin/jobs/{theirs.pk}/{part}").status_code == 404


@pytest.mark.parametrize(
    "spoilt", [None, [], {}, "x", [1], [{"name": 3, "at": "x"}], [[]]]
)
def test_whatever_a_row_holds_its_page_is_shown(
    boss: Client, acme: Tenant, spoilt: Any
):
    job = ended(
        acme,
        type="gone",
        phases=spoilt if spoilt is not None else [],
        params=spoilt if spoilt is not None else {},
        result=spoilt,
        external_ref=spoilt,
    )
    text(boss, job)
