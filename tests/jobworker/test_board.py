"""What is said of a job from its row alone."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock, words
from jobworker import board
from jobworker.models import Job
from tests import factories
from tests.jobworker.screening import ended, pending, running, types  # noqa: F401
from workqueue.models import Node, Tenant

pytestmark = pytest.mark.django_db


def test_a_job_lasts_from_its_submit_or_its_start_until_now_or_its_end(acme: Tenant):
    now = clock.now()
    waits = pending(acme, created_at=now - timedelta(seconds=38))
    runs = running(acme, started_at=now - timedelta(minutes=5))
    over = ended(
        acme,
        started_at=now - timedelta(hours=2),
        finished_at=now - timedelta(hours=1),
    )
    spans = [board.lasted(each, now) for each in (waits, runs, over)]
    assert spans == [timedelta(seconds=38), timedelta(minutes=5), timedelta(hours=1)]


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (timedelta(milliseconds=88), "88 ms"),
        (timedelta(seconds=41.9), "41 s"),
        (timedelta(minutes=12, seconds=59), "12 min"),
        (timedelta(hours=5, minutes=18, seconds=3), "5 h 18 min"),
        (None, words.UNKNOWN),
    ],
)
def test_a_length_is_told_as_exactly_as_a_list_needs(span: Any, said: str):
    assert board.coarse(span).replace("\u00a0", " ") == said


def test_silence_is_said_from_five_minutes_on_and_only_of_a_live_claimant(acme: Tenant):
    now = clock.now()

    def silent(**values: Any) -> Any:
        return board.silent_for(running(acme, **values), now)

    assert silent(progress_at=now - timedelta(minutes=4)) is None
    assert silent(progress_at=now - timedelta(minutes=6)) == timedelta(minutes=6)
    old = now - timedelta(minutes=6)
    assert silent(progress_at=old, heartbeat_at=old) is None
    assert board.silent_for(ended(acme, progress_at=old), now) is None


def test_a_claimant_is_missed_once_it_would_count_as_stopped(
    acme: Tenant, settings: Any
):
    settings.KEEP_ALIVE = timedelta(seconds=60)
    now = clock.now()
    fresh = running(acme, heartbeat_at=now - timedelta(seconds=140))
    gone = running(acme, heartbeat_at=now - timedelta(seconds=150))
    assert board.unheard_for(fresh, now) is None
    assert board.unheard_for(gone, now) == timedelta(seconds=150)


def test_phases_take_until_the_next_one_and_the_last_one_has_the_jobs_state(
    acme: Tenant,
):
    now = clock.now()
    at = [now - timedelta(seconds=s) for s in (60, 50, 10)]
    phases = [
        {"name": name, "at": when.isoformat()}
        for name, when in zip(("plan", "apply", "check\u202e"), at, strict=True)
    ]
    job = running(acme, phases=phases)
    found = board.phases(job, now)
    assert [one.took for one in found] == [timedelta(seconds=s) for s in (10, 40, 10)]
    assert [one.state for one in found] == ["succeeded", "succeeded", "job_running"]
    assert "\u202e" not in found[2].name
    job.status, job.finished_at = Job.Status.FAILED, now
    assert board.phases(job, now)[2].state == "failed"


def test_secrets_are_masked_and_not_filled_in_again():
    params = {"name": "orion", "admin_password": "hunter22", "nodes": 3, "keep": True}
    assert ("admin_password", "••••") in board.named(params)
    assert ("nodes", "3") in board.named(params)


def test_what_began_outside_is_named_first(acme: Tenant):
    job = pending(
        acme, external_ref={"host": "app-1", "what": "export 7", "token": "abc12345"}
    )
    assert board.external(job) == "export 7, host app-1, token ••••"
    assert board.external(pending(acme)) == ""


def test_what_cancel_does_and_a_dead_worker_means_is_the_types(acme: Tenant):
    grows, exports = pending(acme), pending(acme, type="follow_export")
    assert "process group" in board.cancel_does(grows)
    assert "within 2 s" in board.cancel_does(exports)
    assert "Adopt" not in board.if_worker_dies(grows)
    assert "Adopt follows" in board.if_worker_dies(exports)
    gone = pending(acme, type="gone")
    assert board.if_worker_dies(gone) == "the job fails and is not started again"
    assert (board.purpose("grow"), board.purpose("gone")) == ("Grow a cluster.", "")


def test_the_lag_of_the_output_is_told(acme: Tenant):
    assert board.lag_words(running(acme)) == ""
    said = board.lag_words(running(acme, output_lag_ms=1500))
    assert said.replace("\u00a0", " ") == "stored 1.50 s after they were written"


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (
            {"program": "packer", "pid": 4127, "cpu_s": 660.0},
            "The program packer (pid 4127) runs and has used 11\u00a0min of CPU.",
        ),
        (
            {"program": "packer", "pid": 4127, "cpu_s": None},
            "The program packer (pid 4127) runs.",
        ),
    ],
)
def test_a_silent_jobs_program_is_told_as_its_worker_last_said(
    acme: Tenant, report: dict[str, Any], says: str
) -> None:
    node = factories.node("jobworker")
    job = factories.running_job(acme, node)
    assert board.program_words(job) == ""
    for programs in ([], "x", [3], [{"claim": "other"}]):
        Node.objects.update(report={"programs": programs})
        assert board.program_words(job) == ""
    Node.objects.update(report={"programs": [{**report, "claim": str(job.claim_id)}]})
    assert board.program_words(job) == says


def test_what_becomes_of_it_without_its_worker_is_no_fact_of_a_job_that_runs(
    acme: Tenant,
) -> None:
    ref = {"what": "an export", "host": "app-1", "then": "it goes on"}
    job = factories.job(acme, external_ref=ref)
    assert board.external(job) == "an export, host app-1"


def test_a_secret_inside_of_a_parameter_is_not_typed_again() -> None:
    found = board.typed({"name": "demo", "variables": '{"password": "hunter2secret"}'})
    assert found == {"name": "demo"}
