"""The job worker as a process: claims within its caps, runs, records, drains."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from audit import queries
from audit.models import Line, Run
from jobworker import caps, operate
from jobworker.models import Job
from tests import factories
from tests.jobworker.reaching import reach
from tests.processes import Process
from tests.waiting import wait_until
from workqueue import pauses, policy
from workqueue.models import Node, Tenant

pytestmark = pytest.mark.race
Submit = Callable[..., Job]
Start = Callable[..., Process]


def set_caps(**values: Any) -> None:
    policy.save(
        values, who="test", origin="command", why="", declaration=caps.DECLARATION
    )


def test_a_job_runs_and_its_row_its_run_and_its_lines_tell_the_same(
    submitted: Submit, job_worker: Start
) -> None:
    job = submitted("phase:first;progress:40;log:300;say:by the logger;result:a thing")
    process = job_worker()
    reach(job, "succeeded")
    assert (job.progress, job.phase, job.result) == (100, "first", {"made": "a thing"})
    assert [each["name"] for each in job.phases] == ["first"]
    run = Run.objects.get(id=job.claim_id)
    assert (run.kind, run.handler, run.outcome) == ("job", "act_light", "succeeded")
    assert (run.dedup_key, run.line_count, run.attempt) == (str(job.id), 301, 1)
    lines = queries.lines(run.id, after=0, limit=1000)
    assert [line.text for line in lines][-2:] == ["line 300", "by the logger"]
    assert [line.seq for line in lines] == list(range(1, 302))
    process.terminate()
    assert process.wait() == 0
    assert Node.objects.get().status == "stopped"
    assert (
        f"job runner: claimed act_light job {str(job.id)[:4]}… (tier=light"
        in process.log
    )
    assert (
        "job runner: caps heavy=2 medium=1 light=3 total=3 (threads=25)" in process.log
    )
    assert "Traceback" not in process.log


def test_whatever_jobs_raise_the_worker_lives_and_says_which(
    submitted: Submit, job_worker: Start
) -> None:
    raised = ("ValueError", "SystemExit", "KeyboardInterrupt", "GeneratorExit")
    failing = [submitted(f"raise:{name}") for name in raised]
    told = submitted("fail:quota exceeded")
    good = submitted("log:1")
    job_worker()
    reach(good, "succeeded")
    for job, name in zip(failing, raised, strict=True):
        reach(job, "failed")
        assert (job.error_code, job.error) == (name, f"{name}: as it was told")
    reach(told, "failed")
    assert (told.error_code, told.error) == ("told", "quota exceeded")


def test_never_more_than_the_caps_and_one_of_a_group(
    submitted: Submit, job_worker: Start
) -> None:
    set_caps(heavy=1, light=2, total=2)
    jobs = [submitted("busy:0.3", type="act_heavy") for _ in range(3)]
    jobs += [submitted("busy:0.3", type="act_alone") for _ in range(3)]
    job_worker()
    seen: list[tuple[int, int, int]] = []

    def all_done() -> bool:
        running = list(Job.objects.running().values_list("tier", "exclusive"))
        seen.append(
            (
                len(running),
                sum(tier == "heavy" for tier, _ in running),
                sum(bool(group) for _, group in running),
            )
        )
        return not Job.objects.unfinished().exists()

    wait_until(all_done, within=30, what="all jobs done")
    assert max(total for total, _, _ in seen) == 2
    assert max(heavy for _, heavy, _ in seen) == 1
    assert max(alone for _, _, alone in seen) == 1
    assert {job.status for job in Job.objects.all()} == {"succeeded"}


def test_a_changed_cap_is_in_force_without_a_restart_and_kills_nothing(
    submitted: Submit, job_worker: Start
) -> None:
    set_caps(light=1)
    jobs = [submitted("busy:60") for _ in range(3)]
    process = job_worker()
    wait_until(lambda: Job.objects.running().count() == 1, within=10, what="one")
    set_caps(light=3)
    wait_until(lambda: Job.objects.running().count() == 3, within=6, what="three")
    set_caps(light=1)
    process.says("caps heavy=2 medium=1 light=1 total=3")
    wait_until(
        lambda: Node.objects.get().report["used"]["light"] == 1, within=6, what="card"
    )
    assert Job.objects.running().count() == 3
    for job in jobs:
        operate.cancel(job, who="test", origin="command", why="")
        reach(job, "cancelled")


def test_a_sleeping_job_is_woken_by_a_cancel_and_says_who_ended_it(
    submitted: Submit, job_worker: Start
) -> None:
    sleeping, busy = submitted("sleep:3600"), submitted("busy:3600")
    job_worker()
    for job in (sleeping, busy):
        reach(job, "running")
        assert operate.cancel(job, who="ann", origin="command", why="wrong one")
        assert not operate.cancel(job, who="ann", origin="command", why="again")
    for job in (sleeping, busy):
        reach(job, "cancelled", within=3)
        assert Run.objects.get(id=job.claim_id).outcome == "cancelled"


def test_a_job_over_its_time_limit_is_stopped_and_says_so(
    submitted: Submit, job_worker: Start
) -> None:
    job = submitted("busy:3600", type="act_limited")
    job_worker()
    reach(job, "failed")
    assert job.error_code == "time_limit"
    assert "time limit of 1 s reached" in job.error


def test_a_type_whose_program_is_missing_fails_with_what_to_install(
    submitted: Submit, job_worker: Start
) -> None:
    job = submitted(type="act_lacking")
    job_worker()
    reach(job, "failed")
    assert job.error_code == "program_missing"
    assert job.error.startswith("no-such-program is not on PATH of ")
    assert job.error.endswith("; install it or set heavy to 0")


def test_a_job_of_an_unknown_type_stays_and_stops_nobody(
    acme: Tenant, submitted: Submit, job_worker: Start
) -> None:
    strange = factories.job(acme, type="of_another_release")
    good = submitted("log:1")
    job_worker()
    reach(good, "succeeded")
    strange.refresh_from_db()
    assert strange.status == "pending"


def test_what_is_paused_waits_and_starts_when_it_is_resumed(
    submitted: Submit, job_worker: Start
) -> None:
    pause = pauses.pause(
        scope="job_type",
        handler="act_light",
        reason="not now",
        who="test",
        origin="command",
    )
    job, other = submitted("log:1"), submitted("log:1", type="act_heavy")
    job_worker()
    reach(other, "succeeded")
    job.refresh_from_db()
    assert job.status == "pending"
    pauses.resume(pause, who="test", origin="command", why="")
    reach(job, "succeeded", within=6)


def test_a_drain_lets_short_jobs_end_and_fails_the_rest_without_a_second_start(
    submitted: Submit, job_worker: Start
) -> None:
    short, long, deaf = (
        submitted("busy:1"),
        submitted("ref:export export-1;busy:3600", type="act_follows"),
        submitted("deaf:3600"),
    )
    process = job_worker(WORKER_DRAIN_TIMEOUT_S="9")
    for job in (short, long, deaf):
        reach(job, "running")
    process.terminate()
    assert process.wait(within=9 + 2) == 0
    assert reach(short, "succeeded").summary == "worked 1 s"
    reach(long, "failed")
    assert (long.error_code, "stopped before it could finish" in long.error) == (
        "drained",
        True,
    )
    deaf.refresh_from_db()
    assert deaf.status == "running"
    assert deaf.heartbeat_at < deaf.claimed_at  # type: ignore[operator]
    job_worker()
    reach(deaf, "failed", within=5)
    assert deaf.error_code == "abandoned"
    assert "It is not started again" in deaf.error
    assert Run.objects.get(id=deaf.claim_id).outcome == "abandoned"


def test_a_killed_workers_jobs_are_failed_by_another_and_adopt_follows_what_they_began(
    submitted: Submit, job_worker: Start
) -> None:
    job = submitted("ref:AWS export export-1;log:20;busy:3600", type="act_follows")
    first = job_worker()
    reach(job, "running")
    wait_until(lambda: Line.objects.count() >= 20, within=5, what="its lines")
    job_worker()
    first.send(signal.SIGKILL)
    reach(job, "failed", within=20)
    assert job.error.startswith("worker ")
    assert (
        "stopped while AWS export export-1 was running; it continues at the provider."
        in job.error
    )
    assert 'Use "Adopt" to follow it again.' in job.error
    assert Run.objects.get(id=job.claim_id).line_count == 20
    heir = operate.adopt(job, who="ann", origin="command", why="it goes on")
    reach(heir, "succeeded")
    assert heir.summary == "AWS export export-1 has ended; nothing was started"
    assert operate.adoptable(job) == f"Job {heir.id} has adopted it already."


def test_two_workers_share_the_jobs_and_none_runs_twice(
    submitted: Submit, job_worker: Start
) -> None:
    job_worker()
    job_worker()
    jobs = [submitted("busy:0.2") for _ in range(30)]
    wait_until(
        lambda: not Job.objects.unfinished().exists(), within=30, what="all done"
    )
    assert Run.objects.filter(kind="job").count() == len(jobs)
    assert Run.objects.values("node_id").distinct().count() == 2
