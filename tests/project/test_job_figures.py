"""What /metrics tells of long jobs."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit import clock
from jobworker import registry
from project import figures, job_figures
from tests import factories
from tests.factories import job, running_job
from workqueue import live, pauses
from workqueue.models import Node

pytestmark = pytest.mark.django_db


def told() -> dict[str, float]:
    """Sample -> value."""
    families = job_figures.read(list(Node.objects.alive()), now=clock.now())
    return {
        "".join(
            [sample.name, *(f" {word}" for word in sample.labels.values())]
        ): sample.value
        for family in families
        for sample in family.samples
    }


def test_jobs_are_told_by_tier_and_status_with_how_long_they_wait_or_are_silent():
    acme, now = factories.tenant("acme"), clock.now()
    by = factories.node("jobworker")
    job(acme, tier="heavy", created_at=now - timedelta(minutes=20))
    job(acme, tier="heavy")
    running_job(acme, by, tier="light", progress_at=now - timedelta(minutes=12))
    running_job(acme, by, tier="light")
    job(acme, tier="heavy", status="succeeded", created_at=now - timedelta(days=9))
    found = told()
    assert found["millrace_jobs heavy pending"] == 2
    assert found["millrace_jobs heavy running"] == 0
    assert found["millrace_jobs light running"] == 2
    assert 1200 <= found["millrace_job_oldest_pending_seconds heavy"] < 1210
    assert 720 <= found["millrace_job_silent_seconds light"] < 730
    # What has none is told too: a line that ends is not one at zero.
    assert found["millrace_jobs medium pending"] == 0
    assert found["millrace_job_silent_seconds medium"] == 0


def test_jobs_that_a_pause_holds_back_do_not_wait():
    acme, now = factories.tenant("acme"), clock.now()
    waits = job(acme, tier="heavy", created_at=now - timedelta(minutes=20))
    pauses.pause(
        scope="job_type", handler=waits.type, reason="x", who="me", origin="command"
    )
    live.refresh()
    found = told()
    assert found["millrace_jobs heavy pending"] == 1
    assert found["millrace_job_oldest_pending_seconds heavy"] == 0


def test_the_caps_of_all_job_workers_are_told_as_asked_and_as_used():
    caps = {"heavy": 2, "medium": 1, "light": 3, "total": 12}
    report = {"caps": caps, "used": {**caps, "total": 3}, "asleep": 1}
    factories.node("jobworker", report=report)
    factories.node("jobworker", report=report)
    factories.node("jobworker", report=["of another release"])
    factories.node("jobworker", report={"caps": "?", "used": {"total": "many"}})
    factories.node("jobworker", report=report, status="stopped")
    factories.node("worker", report=report)
    found = told()
    assert found["millrace_job_limit_asked total"] == 24
    assert found["millrace_job_limit total"] == 6
    assert found["millrace_job_limit_asked heavy"] == 4
    assert found["millrace_jobs_asleep"] == 2


def test_without_a_job_worker_all_are_zero():
    found = told()
    assert found["millrace_job_limit total"] == found["millrace_job_limit heavy"] == 0


def test_a_job_worker_is_not_behind_a_setting_that_it_does_not_have():
    factories.node("jobworker", report={"settings_version": 7, "stuck": 2})
    found = {family.name: family for family in figures.read(now=clock.now())}
    assert found["millrace_settings_behind"].samples[0].value == 0
    assert found["millrace_threads_stuck"].samples[0].value == 2


def test_the_first_end_of_every_job_type_is_an_increase(monkeypatch):
    monkeypatch.setattr(registry, "types", lambda: {"act_heavy": None})
    found = {family.name: family for family in figures.read(now=clock.now())}
    assert {
        sample.value
        for sample in found["millrace_runs"].samples
        if sample.labels["handler"] == "act_heavy"
    } == {0}


@pytest.mark.postgresql
def test_ended_jobs_cost_nothing():
    acme = factories.tenant()
    for _ in range(300):
        job(acme, status="succeeded", finished_at=clock.now())
    with CaptureQueriesContext(connection) as asked:
        told()
    (statement,) = [q["sql"] for q in asked if "jobworker_job" in q["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobworker_job")
        cursor.execute(f"EXPLAIN {statement}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan" not in plan, plan
    assert "job_pending" in plan, plan
    assert "job_running" in plan, plan
