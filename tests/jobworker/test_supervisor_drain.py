"""The drain of a job worker: what it still hears, what it hands back, and when it is over."""

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from audit.models import Line
from jobworker import keeper, operate, supervisor
from jobworker.models import Job
from jobworker.supervisor import Supervisor
from tests.databases import temporary_server
from tests.jobworker.reaching import reach
from tests.processes import Process, run_manage
from tests.waiting import wait_until
from workqueue.models import Node

pytestmark = pytest.mark.race
Submit = Callable[..., Job]
Start = Callable[..., Process]


def draining(process: Process) -> None:
    process.terminate()
    wait_until(
        lambda: Node.objects.filter(status="draining").exists(),
        within=5,
        what="the drain",
    )


def test_who_is_cancelled_while_its_worker_drains_ends_as_cancelled_and_at_once(
    submitted: Submit, job_worker: Start
) -> None:
    jobs = [submitted("busy:3600"), submitted("program:3600")]
    process = job_worker(WORKER_DRAIN_TIMEOUT_S="60")
    for job in jobs:
        reach(job, "running")
    draining(process)
    for job in jobs:
        assert operate.cancel(job, who="ann", origin="command", why="")
    for job in jobs:
        assert reach(job, "cancelled", within=6).error_code == "cancelled"
    assert process.wait(within=5) == 0


def test_a_time_limit_holds_while_its_worker_drains(
    submitted: Submit, job_worker: Start
) -> None:
    job = submitted("busy:3600")
    Job.objects.filter(pk=job.pk).update(time_limit_s=4)
    process = job_worker(WORKER_DRAIN_TIMEOUT_S="60")
    reach(job, "running")
    draining(process)
    assert reach(job, "failed", within=10).error_code == "time_limit"
    assert process.wait(within=5) == 0


# --- a claim whose reply was lost


def lose_the_reply(
    one: Supervisor,
    monkeypatch: pytest.MonkeyPatch,
    problem: type[Exception] = OperationalError,
) -> None:
    claim = supervisor.claim

    def lost(*of: object, **more: object) -> None:
        claim(*of, **more)  # type: ignore[arg-type]
        raise problem("the connection is lost")

    with monkeypatch.context() as patch:
        patch.setattr(supervisor, "claim", lost)
        with pytest.raises(problem):
            one.poll()


@pytest.mark.parametrize("problem", [ValueError, OperationalError])
def test_a_claim_whose_reply_was_lost_is_made_again_though_nothing_else_waits(
    here: Supervisor,
    submitted: Submit,
    monkeypatch: pytest.MonkeyPatch,
    problem: type[Exception],
) -> None:
    job = submitted("log:1")
    lose_the_reply(here, monkeypatch, problem)
    job.refresh_from_db()
    assert (job.status, Job.objects.pending().exists()) == ("running", False)
    here.poll()
    reach(job, "succeeded", within=5)


def test_a_claim_whose_reply_was_lost_is_given_back_by_a_drain(
    here: Supervisor, submitted: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted("log:1")
    lose_the_reply(here, monkeypatch)
    here.stop()
    here.drain()
    job.refresh_from_db()
    assert (job.status, job.claim_id) == ("pending", None)


# --- what is given up


@pytest.fixture
def only_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are stored then."""
    monkeypatch.setattr(keeper, "EVERY", 3600)


def test_the_last_lines_of_a_job_that_is_given_up_are_kept(
    only_at_the_end: None,
    here: Supervisor,
    submitted: Submit,
    settings: Any,
) -> None:
    settings.WORKER_DRAIN_TIMEOUT = timedelta(seconds=0.1)
    job = submitted("log:3;phase:deaf now;deaf:4")
    here.poll()
    [attempt] = here.running()
    wait_until(lambda: attempt.context.sign.phase == "deaf now", what="its phase")
    here.stop()
    here.drain()
    job.refresh_from_db()
    assert (job.status, job.phase, job.line_count) == ("running", "deaf now", 3)
    assert job.heartbeat_at < job.claimed_at  # type: ignore[operator]
    assert Line.objects.filter(claim_id=job.claim_id).count() == 3
    assert attempt.thread
    attempt.thread.join(10)


# --- a database that is away


def test_a_database_that_does_not_answer_holds_up_no_end(
    submitted: Submit, job_worker: Start
) -> None:
    drain = 3
    job = submitted("busy:3600")
    process = job_worker(WORKER_DRAIN_TIMEOUT_S=str(drain))
    reach(job, "running")
    with transaction.atomic(), connection.cursor() as cursor:
        # Everybody can read, nobody can write. On SQLite the transaction does that.
        if connection.vendor == "postgresql":
            cursor.execute("LOCK TABLE jobworker_job, workqueue_node IN EXCLUSIVE MODE")
        began = time.monotonic()
        process.terminate()
        assert process.wait(within=20) == 0
    assert time.monotonic() - began <= drain + 2
    assert "drain goes on without the database" in process.log


@pytest.mark.postgresql
def test_a_database_that_is_away_holds_up_no_end(spawn: Start) -> None:
    drain = 6
    with temporary_server() as server:
        env = {
            "DATABASE_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "tests.engine_settings",
            "WORKER_DRAIN_TIMEOUT_S": str(drain),
        }
        for command in (
            ["migrate", "--verbosity", "0"],
            ["submit", "act_light", "--param", "does=busy:3600"],
        ):
            done = run_manage(command, env={**os.environ, **env}, timeout=120)
            assert done.returncode == 0, done.stderr
        process = spawn("runjobworker", env=env)
        process.says("job runner: claimed")
        server.stop(mode="immediate")
        began = time.monotonic()
        process.terminate()
        assert process.wait(within=30) == 0
        assert time.monotonic() - began <= drain + 2
        server.start()
