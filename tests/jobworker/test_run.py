"""A claimed job -> its outcome, whatever the job does."""

import errno
import os
from collections.abc import Callable

import pytest
from django.db import OperationalError

from audit import text
from audit.models import Line, Run
from jobworker import run
from jobworker.attempt import Attempt
from workqueue.models import Tenant
from workqueue.run import claimed_here

Make = Callable[..., Attempt]


def ran(attempt: Attempt) -> Attempt:
    ended: list[Attempt] = []
    run.run(attempt, ended=ended.append)
    assert ended == [attempt]
    attempt.job.refresh_from_db()
    return attempt


@pytest.mark.parametrize(
    ("reason", "status", "code", "says"),
    [
        ("cancel", "cancelled", "cancelled", "cancelled"),
        ("limit", "failed", "time_limit", "time limit of 3,600 s reached"),
        ("drain", "failed", "drained", "it is not started again"),
    ],
)
def test_what_a_stop_means_depends_on_who_asked(
    attempt: Make, reason: str, status: str, code: str, says: str
) -> None:
    one = attempt("busy:60")
    one.stop(reason, patience=1)
    job = ran(one).job
    assert (job.status, job.error_code) == (status, code)
    assert says in job.error


def test_parameters_that_this_release_refuses_fail_the_job_with_the_sentence(
    attempt: Make,
) -> None:
    one = attempt()
    one.job.params = {"of another release": 1}
    error = ran(one).job.error
    assert error.startswith("this release refuses its parameters: ")
    assert "There is no such parameter" in error


@pytest.mark.parametrize("params", [[1, 2], 5, None, "x"])
def test_parameters_that_are_none_fail_the_job_with_a_sentence(
    attempt: Make, params: object
) -> None:
    one = attempt()
    one.job.params = params
    job = ran(one).job
    assert job.error_code == "invalid_params"
    assert "They are not a JSON object." in job.error


def test_what_the_thread_runs_is_known_to_its_log_lines(
    attempt: Make, monkeypatch: pytest.MonkeyPatch, acme: Tenant
) -> None:
    seen: list[object] = []
    one = attempt("say:hello")
    monkeypatch.setattr(
        "tests.jobs.act_light.logger.info", lambda *_: seen.append(claimed_here())
    )
    ran(one)
    assert seen == [one.claimed]
    assert claimed_here() is None


def test_a_secret_that_the_job_reads_is_known_to_its_attempt(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = attempt("say:hello")
    monkeypatch.setattr(
        "tests.jobs.act_light.logger.info",
        lambda *_: text.register_secret("correct-horse-battery"),
    )
    ran(one)
    assert [secret.forms for secret in one.transcript.known] == [
        {"correct-horse-battery"}
    ]


def test_an_end_is_stored_however_often_the_database_is_away(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, real, failures = attempt("log:1"), run.finish, [OperationalError("away")] * 3

    def finish(*args: object) -> None:
        if failures:
            raise failures.pop()
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "finish", finish)
    monkeypatch.setattr(run.time, "sleep", lambda _: None)
    assert ran(one).job.status == "succeeded"
    assert Run.objects.count() == 1


def test_a_job_whose_thread_does_not_stop_is_ended_with_where_it_stands(
    attempt: Make,
) -> None:
    one = attempt()
    one.stop("cancel", patience=0)
    end = run._stopped(one, "cancelled; its thread did not stop")
    assert (end.word, one.stop_at < float("inf")) == ("cancelled", True)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_disk_that_takes_no_more_is_one_sentence_whoever_writes(
    attempt: Make, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/jobs/state.json")

    monkeypatch.setattr("tests.jobs.act_light.logger.info", full)
    one = ran(attempt("say:hello"))
    said = f"{os.strerror(number)}: /jobs/state.json. Make room below JOB_ROOT, then submit it again."
    assert one.job.error == said
    assert not Line.objects.filter(text__contains="Traceback").exists()
