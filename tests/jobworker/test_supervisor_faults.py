"""What a job worker survives: frozen, cut off, asked from an open transaction."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from audit.models import LateResult, Run
from jobworker import operate, run, supervisor
from jobworker.models import Job
from jobworker.supervisor import Supervisor
from tests import databases
from tests.jobs import act_light
from tests.jobworker.reaching import reach
from tests.processes import Process, run_manage, sleeping
from tests.waiting import wait_until
from workqueue import connections
from workqueue.worker import EXIT_STUCK

pytestmark = pytest.mark.race
Submit = Callable[..., Job]
Start = Callable[..., Process]


def test_a_frozen_worker_loses_its_jobs_and_stops_them_when_it_wakes_up(
    submitted: Submit, job_worker: Start
) -> None:
    mark = f"7{os.getpid()}"  # seconds; so that this test finds its own program
    frozen = job_worker()
    job = reach(submitted(f"program:{mark}"), "running")
    wait_until(lambda: len(sleeping(mark)) == 1, within=10, what="the program")
    job_worker()
    frozen.freeze()
    reach(job, "failed", within=30)
    assert "stopped while act_light" in job.error
    frozen.thaw()
    wait_until(lambda: not sleeping(mark), within=20, what="the program's end")
    wait_until(LateResult.objects.exists, within=10, what="the late result")
    assert LateResult.objects.get().claim_id == job.claim_id
    assert Run.objects.filter(dedup_key=str(job.id)).count() == 1
    other = reach(submitted("log:1"), "succeeded")
    assert other.error == ""


@pytest.mark.sqlite
def test_a_row_that_no_job_can_have_is_failed_and_keeps_nobody_waiting(
    submitted: Submit, job_worker: Start
) -> None:
    bad, good = submitted("log:1"), submitted("log:1")
    # As somebody wrote it by SQL: SQLite holds any number.
    Job.objects.filter(pk=bad.pk).update(time_limit_s=2**40)
    job_worker()
    reach(good, "succeeded")
    reach(bad, "failed")
    assert bad.error_code == "unstartable"
    assert bad.error.startswith("it could not be begun: OverflowError")


@pytest.mark.postgresql
def test_a_job_is_not_claimed_before_the_commit_that_asks_for_it(
    submitted: Submit, job_worker: Start
) -> None:
    job_worker()
    with transaction.atomic():
        job = submitted("log:1")
        # Another one, committed meanwhile by a process of its own, is claimed and ends.
        first = reach(submitted_elsewhere(), "succeeded")
        job.refresh_from_db()
        assert job.status == "pending"
    assert reach(job, "succeeded").started_at > first.started_at  # type: ignore[operator]
    with transaction.atomic():
        gone = submitted("log:1")
        transaction.set_rollback(True)
    assert not Job.objects.filter(pk=gone.pk).exists()


def submitted_elsewhere() -> Job:
    """Submit by the command, so in a transaction of its own."""
    env = {
        **os.environ,
        "DATABASE_URL": databases.url(),
        "DJANGO_SETTINGS_MODULE": "tests.engine_settings",
    }
    done = run_manage(["submit", "act_light", "--json"], env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    return Job.objects.get(pk=json.loads(done.stdout)["id"])


@pytest.mark.postgresql
def test_connections_that_are_cut_again_and_again_cost_no_job_and_start_none_twice(
    submitted: Submit, job_worker: Start
) -> None:
    worker = job_worker()
    jobs = [submitted("log:5;busy:0.05") for _ in range(40)]
    cut = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name LIKE 'millrace jobworker%%' AND random() < 0.5"
    )

    def all_done() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(cut)
        return not Job.objects.unfinished().exists()

    wait_until(all_done, within=120, what="all jobs done", every=0.7)
    assert {job.status for job in Job.objects.all()} == {"succeeded"}
    assert Run.objects.filter(kind="job").count() == len(jobs)
    assert "Traceback" not in worker.log


@pytest.mark.postgresql
def test_many_jobs_leave_no_connection_behind(
    submitted: Submit, job_worker: Start
) -> None:
    job_worker(DB_POOL_SIZE="6", DB_MAX_OVERFLOW="0")
    for _ in range(40):
        submitted("log:2;sleep:0.01;result:a")
    wait_until(
        lambda: not Job.objects.unfinished().exists(), within=60, what="all done"
    )
    mine = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'millrace jobworker%%'"
    with connection.cursor() as cursor:
        cursor.execute(mine)
        assert cursor.fetchone()[0] <= 6 + 3


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Jobs that hear nothing are stuck as soon as they are cancelled. One more for each that runs."""
    monkeypatch.setattr(supervisor, "CANCEL_PATIENCE", 0.0)
    answer, running, threads = threading.Event(), threading.Semaphore(0), []

    def hear_nothing(*_: object) -> str:
        threads.append(threading.current_thread())
        running.release()
        return "heard" if answer.wait(60) else ""

    monkeypatch.setitem(act_light.DOES, "deaf", hear_nothing)
    yield running
    answer.set()
    for thread in threads:
        thread.join(10)


def test_stuck_threads_take_of_what_the_pool_serves_until_the_worker_starts_afresh(
    here: Supervisor,
    submitted: Submit,
    deaf: threading.Semaphore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each holds a connection: who is claimed beside too many of them gets none."""
    monkeypatch.setattr(connections, "size", lambda: 8)
    asleep = submitted("sleep:3600")
    here.poll()
    found = []
    for _ in range(3):
        job = submitted("ref:export;deaf:", type="act_medium")
        here.poll()
        assert deaf.acquire(timeout=10)
        assert operate.cancel(job, who="ann", origin="command", why="")
        here.poll()  # sees it
        here.poll()  # takes it out
        found.append((len(here.stuck), here.limits.usable))
    assert found == [(1, 1), (2, 1), (3, 0)]
    waits = submitted("log:1")
    here.poll()
    assert here.running()
    assert (here.stopping.is_set(), reach(waits, "pending").claim_id) == (False, None)
    operate.cancel(asleep, who="ann", origin="command", why="")
    wait_until(lambda: here.poll() and here.stopping.is_set(), what="the end")
    assert here.exit_code == EXIT_STUCK
    reach(asleep, "cancelled")


def test_who_starts_afresh_stores_the_ends_of_those_that_are_stuck_before(
    here: Supervisor,
    submitted: Submit,
    deaf: threading.Semaphore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "size", lambda: 5)
    store = run._store

    def store_slowly(*of: Any) -> None:
        time.sleep(0.5)
        store(*of)

    monkeypatch.setattr(run, "_store", store_slowly)
    job = submitted("deaf:")
    here.poll()
    assert deaf.acquire(timeout=10)
    assert operate.cancel(job, who="ann", origin="command", why="")
    wait_until(lambda: here.poll() and here.stopping.is_set(), what="the end")
    here.drain()
    job.refresh_from_db()
    assert job.status == "cancelled"


def test_who_has_slept_and_waits_to_wake_up_is_reported_by_its_claim(
    here: Supervisor, submitted: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "size", lambda: 6)
    poll = submitted("sleep:0.5")
    here.poll()
    reach(poll, "running")
    wait_until(lambda: here.weight.taken() == 0, what="its sleep")
    busy = submitted("busy:60")
    here.poll()
    reach(busy, "running")
    wait_until(lambda: here.report()["waking"] == [str(poll.claim_id)], what="it waits")
    assert here.report()["asleep"] == 0
    operate.cancel(busy, who="ann", origin="command", why="")
    here.poll()
    reach(poll, "succeeded")
    assert here.report()["waking"] == []
