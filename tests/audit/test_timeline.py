"""The time line of an attempt, and why a late result does not count."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from audit import clock, timeline
from audit.rows import LateRow
from audit.timeline import Attempt

pytestmark = pytest.mark.once
T = datetime(2026, 11, 29, 14, 20, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return T + timedelta(seconds=seconds)


def attempt(**values: Any) -> Attempt:
    defaults: dict[str, Any] = {
        "claim_id": clock.uuid7(T), "item_id": 1, "kind": "item", "tenant_id": 1, "tenant": "acme", "handler": "a.b",
        "dedup_key": "", "state": "succeeded", "trigger": "slot", "slot": T, "tick_id": 1, "enqueued_at": after(0.4),
        "claimed_at": after(1.7), "started_at": after(1.8), "finished_at": after(5), "node": "queue-2, 1",
        "number": 1, "recoveries": 0, "seen": 1, "changed": 1, "skipped": 0, "failed": 0,
    }  # fmt: skip
    return Attempt(**{**defaults, **values})


def said(steps: list[timeline.Step]) -> list[tuple[str, str, str]]:
    return [(step.name, step.gap.replace("\u00a0", " "), step.state) for step in steps]


def test_a_finished_attempt_has_five_steps_with_the_time_between_them():
    assert said(timeline.steps(attempt(), others=(), now=after(99))) == [
        ("Due", "400 ms late", ""),
        ("Enqueued", "waited 1.30 s", ""),
        ("Claimed", "100 ms", ""),
        ("Started", "ran 3.20 s", ""),
        ("Finished", "", ""),
    ]


def test_a_live_second_attempt_waited_since_it_came_back():
    first = attempt(state="abandoned", finished_at=after(281))
    second = attempt(
        state="executing",
        number=2,
        claimed_at=after(282),
        started_at=after(282),
        finished_at=None,
        node="queue-1, 31",
    )
    steps = timeline.steps(second, others=[first], now=after(730))
    assert [step.name for step in steps] == [
        "Due",
        "Back in the queue",
        "Claimed",
        "Started",
        "Finished",
    ]
    assert steps[1].gap.replace("\u00a0", " ") == "waited 1 s"
    assert steps[1].note.startswith("first enqueued 14:20:00")
    assert (steps[3].state, steps[3].gap.replace("\u00a0", " ")) == (
        "now",
        "running, 7 min 28 s",
    )
    assert (steps[4].state, steps[4].absent) == ("todo", "not yet")


def test_an_attempt_that_never_began_says_never():
    ended = attempt(
        state="cancelled",
        slot=None,
        trigger="call",
        claimed_at=None,
        started_at=None,
        node="",
        number=0,
    )
    steps = timeline.steps(ended, others=(), now=after(9))
    assert [(step.name, step.absent if step.at is None else "") for step in steps] == [
        ("Enqueued", ""), ("Claimed", "never"), ("Started", "never"), ("Finished", ""),
    ]  # fmt: skip
    assert timeline.waited(ended, ()) is None
    assert ended.ran(after(9)) is None


def test_clocks_that_differ_give_no_negative_time():
    odd = attempt(claimed_at=after(-3), started_at=after(-2), finished_at=after(-2.5))
    assert odd.ran(after(0)) == timedelta()
    assert timeline.waited(odd, ()) == timedelta()


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("abandoned", "did not renew its claim"),
        ("cancelled", "An operator cancelled it"),
        ("failed", "Its time limit ended it"),
    ],
)
def test_a_late_result_is_explained_by_what_had_ended_the_attempt(
    state: str, reason: str
):
    first = attempt(state=state, finished_at=after(281))
    second = attempt(number=2, node="queue-1, 31")
    late = LateRow(
        claim_id=first.claim_id, arrived_at=after(372), node_id=None, node="queue-2, 1", tenant_id=1, tenant="acme",
        handler="a.b", started_at=T, finished_at=after(371), outcome="succeeded", seen=1204, changed=31, skipped=0,
        failed=0, summary="", error="", transcript="",
    )  # fmt: skip
    [explained] = timeline.explain([first, second], {first.claim_id: late})
    assert explained.number == 1
    assert reason in explained.sentence
    assert (
        "At 14:26:12 it reported after all: succeeded, seen 1,204, changed 31"
        in explained.sentence
    )
    assert "attempt 2 meets it as already done" in explained.sentence
