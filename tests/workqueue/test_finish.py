"""Outcomes -> ledger."""

from collections.abc import Callable
from datetime import timedelta
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, transaction

from audit import clock, ledger, queries
from audit.ledger import Ended
from audit.models import LateResult, Run
from audit.sql import insert_closed
from tests import factories
from workqueue import finish as finish_module
from workqueue import reclaim, sql
from workqueue import run as run_module
from workqueue.attempt import Attempt, Finished
from workqueue.finish import finish
from workqueue.models import Node, Tenant, WorkItem
from workqueue.slots import failed_by_limit

Make = Callable[..., Attempt]


def ended(attempt: Attempt) -> Finished:
    return run_module.run(attempt, stopping=lambda: False)


def close(*finished: Finished, me: Node, **more: object) -> int:
    return finish(finished, node_id=me.id, node="host, 1", **more)  # type: ignore[arg-type]


def test_finishing_deletes_the_item_and_writes_its_run(attempt: Make, me: Node) -> None:
    one = attempt("log:1")
    close(ended(one), me=me)
    assert not WorkItem.objects.exists()
    run = Run.objects.get()
    assert run.id == one.claimed.claim_id
    assert (run.outcome, run.tenant, run.handler, run.attempt, run.node_id) == (
        "succeeded",
        "acme",
        "act",
        1,
        me.id,
    )
    assert "line 1" in run.transcript
    assert run.line_count == 1
    assert run.started_at == one.started_at


def test_a_worker_that_lost_its_claim_cannot_close_the_item(
    attempt: Make, me: Node
) -> None:
    one = attempt()
    item = WorkItem.objects.get()
    successor = uuid4()
    WorkItem.objects.filter(pk=item.pk).update(claim_id=successor)
    close(ended(one), me=me)
    item.refresh_from_db()
    assert (item.status, item.claim_id) == ("executing", successor)
    assert not Run.objects.exists()
    late = LateResult.objects.get()
    assert (late.claim_id, late.outcome) == (one.claimed.claim_id, "succeeded")


@pytest.mark.parametrize("does", ["", "raise:ValueError", "again:5"])
def test_whatever_a_lost_claim_ends_with_is_kept_as_a_late_result(
    attempt: Make, me: Node, does: str
) -> None:
    one = attempt(does, retry_attempts=3)
    WorkItem.objects.update(claim_id=uuid4())
    close(ended(one), me=me)
    assert LateResult.objects.get().claim_id == one.claimed.claim_id
    assert not Run.objects.exists()
    assert WorkItem.objects.get().status == "executing"


def test_a_result_after_the_item_was_abandoned_is_kept_as_a_late_one(
    attempt: Make, me: Node
) -> None:
    one = attempt("partial")
    Node.objects.filter(pk=me.pk).update(status="stopped")
    reclaim.reclaim(claim_timeout=timedelta(minutes=10))
    close(ended(one), me=me)
    run = Run.objects.get()
    assert run.outcome == "abandoned"
    late = LateResult.objects.get()
    assert (late.claim_id, late.outcome, late.error) == (
        run.id,
        "partial",
        "one failed",
    )
    assert WorkItem.objects.get().status == "pending"


def test_a_lost_reply_to_the_commit_is_recognised(attempt: Make, me: Node) -> None:
    finished, finish_id = ended(attempt()), uuid4()
    close(finished, me=me, finish_id=finish_id)
    close(finished, me=me, finish_id=finish_id)  # the reply was lost: it is sent again
    assert Run.objects.count() == 1
    assert not LateResult.objects.exists()


def test_the_same_result_under_another_finish_is_a_late_one(
    attempt: Make, me: Node
) -> None:
    finished = ended(attempt())
    close(finished, me=me)
    close(finished, me=me)
    assert Run.objects.count() == 1
    assert LateResult.objects.count() == 1


@pytest.mark.parametrize("retries", [0, 1])
def test_of_two_results_of_one_attempt_the_first_counts_and_the_other_is_late(
    attempt: Make, me: Node, retries: int
) -> None:
    """Its time limit has failed it, and its thread comes back before that is stored."""
    one, other = attempt("log:1", retry_attempts=retries), attempt("log:2")
    close(ended(other), failed_by_limit(one), ended(one), me=me)
    run = Run.objects.get(id=one.claimed.claim_id)
    assert (run.outcome, run.error[:18]) == ("failed", "time limit of 3600")
    late = LateResult.objects.get()
    assert (late.claim_id, late.outcome) == (one.claimed.claim_id, "succeeded")
    assert Run.objects.count() == 2
    assert WorkItem.objects.filter(status="pending").count() == retries


def test_a_second_result_is_a_late_one_also_after_a_lost_reply_to_the_commit(
    attempt: Make, me: Node
) -> None:
    one, finish_id = attempt(), uuid4()
    batch = (failed_by_limit(one), ended(one))
    with (
        patch.object(ledger, "record_late", side_effect=OperationalError("gone")),
        pytest.raises(OperationalError),
    ):
        close(*batch, me=me, finish_id=finish_id)
    close(*batch, me=me, finish_id=finish_id)
    assert Run.objects.count() == 1
    assert LateResult.objects.get().outcome == "succeeded"


def test_a_failed_attempt_goes_back_as_its_row_says_and_then_ends(
    attempt: Make, me: Node
) -> None:
    one = attempt(
        "raise:ValueError", handler="act_retry", retry_attempts=1, retry_base_s=60
    )
    before = clock.now()
    assert close(ended(one), me=me) == 1
    item = WorkItem.objects.get()
    assert (item.status, item.failures, item.attempts) == ("pending", 1, 1)
    assert item.claim_id is None
    assert timedelta(seconds=45) < item.not_before - before < timedelta(seconds=80)
    assert item.last_error == "ValueError: wrong"
    assert Run.objects.get().outcome == "failed"
    last = one.claimed._replace(failures=1, claim_id=uuid4())
    WorkItem.objects.update(status="executing", claim_id=last.claim_id)
    close(ended(Attempt(last, one.transcript.__class__(claim_id=last.claim_id))), me=me)
    assert not WorkItem.objects.exists()


def test_again_in_puts_the_item_back_without_a_failure(attempt: Make, me: Node) -> None:
    close(ended(attempt("again:30")), me=me)
    item = WorkItem.objects.get()
    assert (item.status, item.failures) == ("pending", 0)
    assert item.not_before > clock.now() + timedelta(seconds=20)
    assert Run.objects.get().outcome == "succeeded"


def test_an_item_asked_to_run_again_meanwhile_goes_back_once(
    attempt: Make, me: Node, take: Callable[..., list[object]]
) -> None:
    one = attempt()
    WorkItem.objects.update(rerun=True)
    close(ended(one), me=me)
    item = WorkItem.objects.get()
    assert (item.status, item.rerun) == ("pending", False)
    assert item.not_before <= clock.now() + timedelta(seconds=1)
    assert Run.objects.count() == 1


def test_a_batch_keeps_its_good_results_when_one_cannot_be_stored(
    attempt: Make, me: Node, acme: Tenant, take: Callable[..., list[object]]
) -> None:
    good = [attempt(f"log:{n + 1}") for n in range(6)]
    bad = attempt("unstorable")
    batch = [ended(a) for a in (*good[:3], bad, *good[3:])]
    close(*batch, me=me)
    assert Run.objects.filter(outcome="succeeded").count() == 6
    assert not WorkItem.objects.exists()
    run = Run.objects.get(id=bad.claimed.claim_id)
    assert run.outcome == "failed"
    assert run.error.startswith("its result could not be stored: ValueError: ")


def test_a_fault_of_the_connection_is_passed_on_so_that_the_batch_is_repeated(
    attempt: Make, me: Node
) -> None:
    finished = ended(attempt())
    with (
        patch.object(ledger, "_columns", side_effect=OperationalError("gone")),
        pytest.raises(OperationalError),
    ):
        close(finished, me=me)
    assert WorkItem.objects.get().status == "executing"
    close(finished, me=me)
    assert Run.objects.count() == 1


@pytest.mark.parametrize("lost", [2, 4])
def test_a_halved_batch_that_loses_its_connection_makes_no_late_result(
    attempt: Make, me: Node, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """Of the half that is good, or of the failure in place of the bad one."""
    good, bad = attempt("log:1"), attempt("unstorable")
    batch, finish_id, calls = (ended(good), ended(bad)), uuid4(), []
    close_batch = finish_module._close

    def flaky(*args: object, **kwargs: object) -> object:
        calls.append(1)
        closed = close_batch(*args, **kwargs)  # type: ignore[arg-type]
        if len(calls) == lost:
            raise OperationalError("the reply is lost")
        return closed

    monkeypatch.setattr(finish_module, "_close", flaky)
    with pytest.raises(OperationalError):
        close(*batch, me=me, finish_id=finish_id)
    close(*batch, me=me, finish_id=finish_id)
    assert Run.objects.count() == 2
    assert not LateResult.objects.exists()
    assert not WorkItem.objects.exists()


@pytest.mark.parametrize(
    "problem",
    [
        AttributeError("no total_seconds"),
        OverflowError("too far"),
        RecursionError("too deep"),
        KeyError("x"),
    ],
)
def test_whatever_a_result_makes_the_finish_raise_fails_that_result_alone(
    attempt: Make, me: Node, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    good, bad = attempt("log:1"), attempt("log:2")
    end_of = finish_module._end_of

    def refuse(finished: Finished) -> object:
        if finished.attempt is bad and finished.word == "succeeded":
            raise problem
        return end_of(finished)

    monkeypatch.setattr(finish_module, "_end_of", refuse)
    close(ended(good), ended(bad), me=me)
    assert Run.objects.get(id=good.claimed.claim_id).outcome == "succeeded"
    run = Run.objects.get(id=bad.claimed.claim_id)
    assert run.outcome == "failed"
    assert run.error.startswith("its result could not be stored: ")


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("text", ["ValueError", "Nul", "Secret", "Long"])
def test_hostile_and_endless_error_text_is_stored(
    attempt: Make, me: Node, text: str, retries: int
) -> None:
    close(ended(attempt(f"raise:{text}", retry_attempts=retries)), me=me)
    run = Run.objects.get()
    errors = [run.error, *WorkItem.objects.values_list("last_error", flat=True)]
    assert run.outcome == "failed"
    assert len(errors) == 1 + retries
    for error in errors:
        assert error.startswith("ValueError: ")
        assert "\x00" not in error
        assert "hunter2" not in error
        assert len(error) < 100_000


def test_a_long_transcript_stands_in_lines_in_order(attempt: Make, me: Node) -> None:
    one = attempt("log:2000")
    close(ended(one), me=me)
    run = Run.objects.get()
    assert (run.transcript, run.line_count, run.dropped_lines) == ("", 2000, 0)
    lines = queries.lines(run.id, after=0, limit=5000)
    assert [line.text for line in lines] == [f"line {n + 1}" for n in range(2000)]
    assert [line.seq for line in lines] == list(range(1, 2001))


def test_what_never_started_goes_back_as_if_it_had_not_been_claimed(
    attempt: Make,
) -> None:
    one = attempt()
    assert finish_module.hand_back([one.claimed.id], [one.claimed.claim_id]) == 1
    item = WorkItem.objects.get()
    assert (item.status, item.attempts, item.claim_id, item.node_id) == (
        "pending",
        0,
        None,
        None,
    )
    assert not Run.objects.exists()
    assert finish_module.hand_back([one.claimed.id], [one.claimed.claim_id]) == 0


@pytest.mark.postgresql
@pytest.mark.parametrize("analyzed", [False, True])
def test_the_finish_goes_by_primary_key_with_and_without_statistics(
    acme: Tenant, analyzed: bool
) -> None:
    WorkItem.objects.bulk_create(
        [
            WorkItem(
                tenant=acme,
                tenant_slug="acme",
                handler="act",
                dedup_key=str(n),
                status="executing",
                claim_id=uuid4(),
                not_before=clock.now(),
                enqueued_at=clock.now(),
                trigger="call",
            )
            for n in range(5000)
        ]
    )
    some = list(WorkItem.objects.values_list("id", "claim_id")[:100])
    ends = [
        Ended(c, None, clock.now(), "succeeded", *[0] * 4, "", "", None, "", 0, 0)
        for _, c in some
    ]
    given = dict(zip(Ended._fields, ends[0], strict=True))
    params = {
        **given,
        "ids": [i for i, _ in some],
        "id": [c for _, c in some],
        "kind": "item",
        "finish_id": uuid4(),
    }
    with transaction.atomic(), connection.cursor() as cursor:
        if analyzed:
            cursor.execute("ANALYZE workqueue_workitem")
        cursor.execute(sql.FINISHING)
        statement = insert_closed(("id",), sql.FINISH).replace(")b", ")s")
        cursor.execute("EXPLAIN " + statement, params)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "workqueue_workitem_pkey" in plan, plan
    assert "Seq Scan" not in plan, plan


def test_rows_of_two_tenants_stay_apart(attempt: Make, me: Node) -> None:
    other = factories.item(factories.tenant("other"), "act")
    close(ended(attempt()), me=me)
    assert list(WorkItem.objects.values_list("id", flat=True)) == [other.id]
