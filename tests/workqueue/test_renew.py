"""Keeping the claims of a process."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from audit import clock
from workqueue import reclaim, renew
from workqueue.attempt import Attempt
from workqueue.models import Node, WorkItem
from workqueue.renew import Renewing

Make = Callable[..., Attempt]
TEN_MINUTES = timedelta(minutes=10)
BEAT = timedelta(seconds=10)


class Hand:
    """What a process holds, in place of its slots and its finisher."""

    def __init__(self, *attempts: Attempt) -> None:
        self.running = {a: a for a in attempts}

    def claims(self) -> list[Any]:
        return [a.claimed.claim_id for a in self.running]


def beats(me: Node, hand: Hand) -> Callable[[], None]:
    slots: Any = hand
    finisher: Any = Hand()
    return Renewing(node_id=me.id, slots=slots, finisher=finisher)


def test_renewing_keeps_a_claim_and_names_the_ones_without_a_reply(
    attempt: Make, me: Node
) -> None:
    known, stray = attempt("1"), attempt("2")
    old = clock.now() - timedelta(hours=1)
    WorkItem.objects.update(
        renewed_at=old, claimed_at=clock.now() - timedelta(seconds=30)
    )
    found = renew.renew(node_id=me.id, in_memory={known.claimed.claim_id}, beat=BEAT)
    assert found.held == {known.claimed.claim_id, stray.claimed.claim_id}
    assert found.strays == {stray.claimed.claim_id: stray.claimed.id}
    assert reclaim.reclaim(claim_timeout=TEN_MINUTES) == 0


def test_a_fresh_claim_whose_reply_may_still_come_is_no_stray(
    attempt: Make, me: Node
) -> None:
    attempt()
    assert renew.renew(node_id=me.id, in_memory=set(), beat=BEAT).strays == {}


def test_a_claim_whose_reply_was_lost_goes_back_at_the_second_beat(
    attempt: Make, me: Node
) -> None:
    attempt()
    WorkItem.objects.update(claimed_at=clock.now() - timedelta(minutes=1))
    beat = beats(me, Hand())
    beat()
    assert WorkItem.objects.get().status == "executing"
    beat()
    item = WorkItem.objects.get()
    assert (item.status, item.attempts) == ("pending", 0)


def test_a_claim_that_somebody_took_closes_the_door_of_its_attempt(
    attempt: Make, me: Node
) -> None:
    kept, gone = attempt("1"), attempt("2")
    WorkItem.objects.filter(dedup_key="2").delete()
    beats(me, Hand(kept, gone))()
    assert (kept.closed, gone.closed) == (False, True)


def test_a_claim_that_is_gone_is_lost(attempt: Make) -> None:
    kept, gone = attempt("1"), attempt("2")
    WorkItem.objects.filter(dedup_key="2").delete()
    both = [kept.claimed.claim_id, gone.claimed.claim_id]
    assert renew.lost(both) == {gone.claimed.claim_id}
