"""One UPDATE keeps all claims; a claim that was taken stops its job."""

from collections.abc import Callable
from datetime import timedelta

from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from jobworker.attempt import Attempt
from jobworker.holding import Holding
from jobworker.models import Job

Make = Callable[..., Attempt]


def test_all_running_jobs_are_kept_by_one_statement(attempt: Make) -> None:
    attempts = [attempt() for _ in range(3)]
    Job.objects.update(heartbeat_at=F("heartbeat_at") - timedelta(hours=1))
    with CaptureQueriesContext(connection) as seen:
        Holding(running=lambda: attempts)()
    assert len(seen) == 1
    for each in attempts:
        each.job.refresh_from_db()
        assert each.job.heartbeat_at >= each.job.claimed_at  # type: ignore[operator]


def test_a_process_without_jobs_asks_nothing(transactional_db: None) -> None:
    with CaptureQueriesContext(connection) as seen:
        Holding(running=list)()
    assert len(seen) == 0


def test_a_claim_that_somebody_took_stops_its_job_and_closes_its_door(
    attempt: Make,
) -> None:
    mine, lost = attempt(), attempt()
    Job.objects.filter(pk=lost.job.pk).update(status="failed")
    Holding(running=lambda: [mine, lost])()
    assert (lost.closed, lost.context.reason) == (True, "lost")
    assert (mine.closed, mine.context.reason) == (False, "")
