"""How a job ended is stored once, and never lost."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import DataError

from audit import ledger
from audit.models import Event, LateResult, Line, Run
from jobworker import finish as finishing
from jobworker import registry
from jobworker.attempt import Attempt
from jobworker.finish import finish
from jobworker.models import Job
from workqueue.context import Outcome

Make = Callable[..., Attempt]


def test_a_short_job_has_its_lines_in_its_run_a_long_one_in_their_table(
    attempt: Make,
) -> None:
    short, long = attempt(), attempt()
    short.context.log("one line")
    for number in range(2000):
        long.context.log(f"line {number}")
    for each in (short, long):
        finish(each, Outcome(changed=1), "succeeded", "", "")
    assert "one line" in Run.objects.get(id=short.claimed.claim_id).transcript
    assert Line.objects.count() == Run.objects.get(id=long.claimed.claim_id).line_count
    long.job.refresh_from_db()
    assert (long.job.line_count, long.job.progress) == (2000, 100)


def test_lines_that_were_taken_but_not_committed_are_stored_with_the_end(
    attempt: Make,
) -> None:
    one = attempt()
    one.context.log("taken")
    one.transcript.take()
    one.context.log("not taken")
    finish(one, Outcome(), "succeeded", "", "")
    texts = Line.objects.order_by("seq").values_list("text", flat=True)
    assert list(texts) == ["taken", "not taken"]


def test_a_result_whose_claim_was_taken_is_kept_as_a_late_one(attempt: Make) -> None:
    one = attempt()
    Job.objects.update(status="failed", error="abandoned")
    finish(one, Outcome(changed=3, summary="done"), "succeeded", "", "")
    late = LateResult.objects.get()
    assert (late.claim_id, late.outcome, late.changed) == (
        one.claimed.claim_id,
        "succeeded",
        3,
    )
    one.job.refresh_from_db()
    assert (one.job.status, one.job.error) == ("failed", "abandoned")
    assert not Run.objects.exists()


def test_an_end_that_was_stored_and_is_stored_again_is_recognised(
    attempt: Make,
) -> None:
    one = attempt()
    for _ in range(2):
        finish(one, Outcome(), "succeeded", "", "")
    assert Run.objects.count() == 1
    assert not LateResult.objects.exists()


def test_a_result_that_the_database_refuses_fails_with_the_reason(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, real, calls = attempt(), ledger.record, []

    def refuse_once(*args: Any, **more: Any) -> None:
        calls.append(args)
        if len(calls) == 1:
            raise DataError("too strange")
        real(*args, **more)

    monkeypatch.setattr(finishing.ledger, "record", refuse_once)
    finish(one, Outcome(changed=1), "succeeded", "", "")
    one.job.refresh_from_db()
    assert (one.job.status, one.job.error_code) == ("failed", "unstorable")
    assert one.job.error == "its result could not be stored: DataError: too strange"


def test_hostile_words_of_a_job_are_stored_visibly(attempt: Make) -> None:
    one = attempt()
    one.context.phase("<b>\0\ud800" + "p" * 500)
    one.context.log("<script>alert(1)</script>\0")
    details = {"nan": float("nan"), "text": "\0", "password": "hunter22hunter22"}
    finish(
        one, Outcome(details=details, summary="\0\ud800"), "failed", "x" * 90, "\0" * 9
    )
    one.job.refresh_from_db()
    assert (
        "\0" not in f"{one.job.phase}{one.job.summary}{one.job.error}{one.job.result}"
    )
    assert "hunter22" not in str(one.job.result)
    assert len(one.job.error_code) == 40


def test_every_end_is_published_with_the_job_that_it_tells_of(attempt: Make) -> None:
    good, bad = attempt(), attempt()
    finish(good, Outcome(summary="made"), "succeeded", "", "")
    finish(bad, Outcome(failed=1), "failed", "x", "quota exceeded")
    first, second = Event.objects.order_by("pk")
    assert (first.type, first.subject) == ("job.succeeded", f"job:{good.job.id}")
    assert (second.type, second.severity) == ("job.failed", 3)
    assert second.data["error"] == "quota exceeded"


def test_its_type_is_told_of_every_end_but_a_good_one(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the job's thread is stuck and says nothing itself."""
    told: list[tuple[str, UUID, str]] = []
    monkeypatch.setattr(registry, "broken_off", lambda *given: told.append(given))
    finish(attempt(), Outcome(), "succeeded", "", "")
    assert told == []
    ends = [attempt() for _ in range(3)]
    for one, word in zip(ends, ("failed", "partial", "cancelled"), strict=True):
        finish(one, Outcome(), word, "", f"it {word}")
        assert told[-1] == ("act_light", one.job.id, f"it {word}")
    assert len(told) == 3
