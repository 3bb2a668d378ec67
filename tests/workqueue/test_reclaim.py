"""Abandoned claims -> pending, failed or held."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from audit import clock
from audit.models import Run
from tests import factories
from workqueue import reclaim
from workqueue.attempt import Attempt
from workqueue.models import Node, Tenant, WorkItem

Make = Callable[..., Attempt]
TEN_MINUTES = timedelta(minutes=10)


def stop(me: Node) -> None:
    Node.objects.filter(pk=me.pk).update(status="stopped")


def test_an_item_of_a_live_process_is_left_alone_however_long_it_runs(
    attempt: Make,
) -> None:
    one = attempt()
    WorkItem.objects.update(claimed_at=clock.now() - timedelta(days=1))
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 0
    assert WorkItem.objects.get().claim_id == one.claimed.claim_id


def test_an_item_is_reclaimed_only_after_the_timeout(attempt: Make) -> None:
    attempt()
    WorkItem.objects.update(renewed_at=clock.now() - timedelta(minutes=9, seconds=50))
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 0
    WorkItem.objects.update(renewed_at=clock.now() - timedelta(minutes=10, seconds=1))
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 1
    assert WorkItem.objects.get().status == "pending"


def test_what_a_stopped_process_held_goes_back_as_a_suspect_and_its_attempt_is_recorded(
    attempt: Make, me: Node
) -> None:
    one = attempt()
    stop(me)
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 1
    item = WorkItem.objects.get()
    assert (item.status, item.recoveries, item.attempts, item.claim_id) == (
        "pending",
        1,
        1,
        None,
    )
    run = Run.objects.get()
    assert (run.id, run.outcome) == (one.claimed.claim_id, "abandoned")
    assert run.error.startswith("abandoned by host, 1, last heartbeat ")
    assert run.error.endswith("returned to the queue")


def test_an_item_of_a_process_that_nobody_knows_is_reclaimed(
    attempt: Make, me: Node
) -> None:
    attempt()
    Node.objects.all().delete()
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 1
    assert "its process is not known any more" in Run.objects.get().error


def test_rows_that_say_fail_end_and_rows_that_say_hold_wait_for_an_operator(
    attempt: Make, me: Node
) -> None:
    attempt(handler="act_fail", abandon="fail")
    attempt(handler="act_hold", abandon="hold")
    stop(me)
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 2
    failed = Run.objects.get(handler="act_fail")
    assert (failed.outcome, failed.error.split(": ")[-1]) == (
        "failed",
        "it is not run again",
    )
    item = WorkItem.objects.get()
    assert (item.handler, item.status) == ("act_hold", "held")
    assert "release or drop it" in item.held_reason


def test_after_three_recoveries_the_attempt_failed_and_the_item_is_held(
    attempt: Make, me: Node, acme: object
) -> None:
    attempt()
    WorkItem.objects.update(recoveries=2)
    stop(me)
    reclaim.reclaim(claim_timeout=TEN_MINUTES)
    item = WorkItem.objects.get()
    assert (item.status, item.recoveries) == ("held", 3)
    assert "its worker died 3 times" in item.held_reason
    assert Run.objects.get().outcome == "failed"
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 0


def test_what_a_drain_gives_up_runs_again_without_being_a_suspect(
    attempt: Make,
) -> None:
    one = attempt()
    assert (
        reclaim.give_up([one.claimed.claim_id], reason="not finished within 20 s") == 1
    )
    item = WorkItem.objects.get()
    assert (item.status, item.recoveries) == ("pending", 0)
    assert Run.objects.get().error == "not finished within 20 s; returned to the queue"


def hold(acme: Tenant, me: Node, *, count: int) -> list[UUID]:
    """The claims of so many executing items."""
    return [
        factories.item(
            acme,
            "act",
            dedup_key=str(n),
            status="executing",
            claim_id=uuid4(),
            node_id=me.id,
            trigger="call",
        ).claim_id
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [reclaim.BATCH, reclaim.BATCH + 3])
def test_more_than_a_batch_is_reclaimed_whole(
    acme: Tenant, me: Node, count: int
) -> None:
    hold(acme, me, count=count)
    stop(me)
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == count
    assert Run.objects.count() == count


def test_a_drain_gives_up_more_than_a_batch_whole(acme: Tenant, me: Node) -> None:
    claims = hold(acme, me, count=reclaim.BATCH + 50)
    assert reclaim.give_up(claims, reason="not finished") == len(claims)
    back = WorkItem.objects.filter(status="pending", recoveries=0)
    assert back.count() == len(claims)


def test_who_may_not_judge_takes_only_what_stopped_processes_held(
    attempt: Make, me: Node
) -> None:
    one = attempt()
    WorkItem.objects.update(renewed_at=clock.now() - timedelta(minutes=11))
    assert reclaim.reclaim(claim_timeout=None) == 0
    assert WorkItem.objects.get().claim_id == one.claimed.claim_id
    stop(me)
    assert reclaim.reclaim(claim_timeout=None) == 1
