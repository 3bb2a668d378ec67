"""timeline: what the page of one attempt shows, live or finished, from plain values.

`workqueue.views` fills an Attempt from the live item, `of_run` from the ledger's
row; the steps and the sentences are the same for both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from audit import words
from audit.rows import LateRow, RunRow

NEVER = "never"
ABANDON = {
    "requeue": "goes back to the queue",
    "fail": "fails; it starts at most once",
    "hold": "is held for an operator",
}
TRIGGERS = {
    "slot": "its time had come",
    "start": "a new master started",
    "operator": "an operator asked for it",
    "call": "the application asked for it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt as its page shows it."""

    claim_id: UUID
    item_id: int | None
    kind: str  # item | job
    tenant_id: int
    tenant: str  # slug
    handler: str  # key
    dedup_key: str
    state: str  # executing, or the outcome
    trigger: str  # slot | start | operator | call
    slot: datetime | None
    tick_id: int | None
    enqueued_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None  # None: it runs
    node: str  # host, pid
    number: int  # 1 = first start; 0 = never started
    recoveries: int
    seen: int | None  # None: not said (yet)
    changed: int | None
    skipped: int | None
    failed: int | None
    summary: str = ""
    error: str = ""
    details: Any = None
    line_count: int | None = None  # None: still written
    dropped_lines: int = 0
    renewed_at: datetime | None = None  # of a live one
    time_limit: timedelta | None = None  # of a live one
    abandon: str = ""  # of a live one: requeue | fail | hold

    @property
    def live(self) -> bool:
        """Whether a worker holds it."""
        return self.finished_at is None

    def ran(self, now: datetime) -> timedelta | None:
        """For how long it ran, or runs."""
        return (
            None
            if self.started_at is None
            else max((self.finished_at or now) - self.started_at, timedelta())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A point of the time line, and what the stretch after it says."""

    name: str
    at: datetime | None  # None: not yet, or never
    note: str = ""  # under the time
    gap: str = ""  # on the stretch to the next point
    state: str = ""  # "" | now | todo
    absent: str = "not yet"  # what stands in place of the time


def of_run(run: RunRow) -> Attempt:
    """The attempt behind a row of the ledger."""
    said = run.started_at is not None
    return Attempt(
        claim_id=run.id,
        item_id=run.item_id,
        kind=run.kind,
        tenant_id=run.tenant_id,
        tenant=run.tenant,
        handler=run.handler,
        dedup_key=run.dedup_key,
        state=run.outcome,
        trigger=run.trigger,
        slot=run.slot,
        tick_id=run.tick_id,
        enqueued_at=run.enqueued_at,
        claimed_at=run.claimed_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        node=run.node,
        number=run.attempt,
        recoveries=run.recoveries,
        seen=run.seen if said else None,
        changed=run.changed if said else None,
        skipped=run.skipped if said else None,
        failed=run.failed if said else None,
        summary=run.summary,
        error=run.error,
        details=run.details,
        line_count=run.line_count,
        dropped_lines=run.dropped_lines,
    )


def queued_at(attempt: Attempt, others: Sequence[Attempt]) -> datetime:
    """Since when it waited: enqueued, or back in the queue after the attempt before it."""
    ends = [
        other.finished_at
        for other in others
        if other.finished_at and other.number < attempt.number
    ]
    return max([attempt.enqueued_at, *ends])


def waited(attempt: Attempt, others: Sequence[Attempt]) -> timedelta | None:
    """How long it waited; None: it was never claimed."""
    if attempt.claimed_at is None:
        return None
    return max(attempt.claimed_at - queued_at(attempt, others), timedelta())


def steps(attempt: Attempt, *, others: Sequence[Attempt], now: datetime) -> list[Step]:
    """Due, enqueued, claimed, started, finished, with the time between them."""
    queued = queued_at(attempt, others)
    back = queued > attempt.enqueued_at
    due = (
        []
        if attempt.slot is None
        else [Step(name="Due", at=attempt.slot, gap=_late(attempt, attempt.slot))]
    )
    wait = waited(attempt, others)
    enqueued = Step(
        name="Back in the queue" if back else "Enqueued",
        at=queued,
        note=f"first enqueued {words.precise(attempt.enqueued_at)}"
        if back
        else TRIGGERS.get(attempt.trigger, ""),
        gap="" if wait is None else f"waited {words.duration(wait)}",
    )
    return [*due, enqueued, *_run_steps(attempt, now=now)]


def _run_steps(attempt: Attempt, *, now: datetime) -> list[Step]:
    ran = words.duration(attempt.ran(now))
    absent = "not yet" if attempt.live else NEVER
    claimed, started, finished = (
        attempt.claimed_at,
        attempt.started_at,
        attempt.finished_at,
    )
    between = (
        words.duration(started - claimed)
        if claimed and started and started >= claimed
        else ""
    )
    return [
        Step(
            name="Claimed",
            at=claimed,
            note=f"by {words.shown(attempt.node)}" if claimed and attempt.node else "",
            gap=between,
            state="" if claimed else "todo",
            absent=absent,
        ),
        Step(
            name="Started",
            at=started,
            gap=(f"running, {ran}" if attempt.live else f"ran {ran}")
            if started
            else "",
            state="now" if attempt.live and started else "" if started else "todo",
            absent=absent,
        ),
        Step(
            name="Finished",
            at=finished,
            state="" if finished else "todo",
            absent=absent,
        ),
    ]


def _late(attempt: Attempt, slot: datetime) -> str:
    late = attempt.enqueued_at - slot
    return (
        f"{words.duration(late)} late"
        if late > timedelta(milliseconds=5)
        else "on time"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A late result, explained."""

    number: int  # of its attempt
    row: LateRow
    sentence: str


def explain(attempts: Sequence[Attempt], lates: Mapping[UUID, LateRow]) -> list[Late]:
    """Why a result that came after all does not count, and what became of it."""
    found = []
    for place, attempt in enumerate(attempts):
        if (late := lates.get(attempt.claim_id)) is None:
            continue
        following = attempts[place + 1] if place + 1 < len(attempts) else None
        found.append(
            Late(
                number=attempt.number,
                row=late,
                sentence=_explained(attempt, late, following),
            )
        )
    return found


def _explained(attempt: Attempt, late: LateRow, following: Attempt | None) -> str:
    who = words.shown(attempt.node) or "Its worker"
    taken = (
        ""
        if attempt.finished_at is None
        else f" at {words.precise(attempt.finished_at)[:8]}"
    )
    then = (
        f" and {words.shown(following.node)} took it"
        if following and following.node
        else ""
    )
    lost = {
        "abandoned": f"{who} did not renew its claim in time, so the claim was taken from it{taken}{then}.",
        "cancelled": f"An operator cancelled it{taken} while {who} was at it{then}.",
        "failed": f"Its time limit ended it{taken} while {who} was at it{then}.",
    }.get(attempt.state, f"The claim was no longer that of {who}{taken}{then}.")
    counts = f"{late.outcome}, seen {late.seen:,}, changed {late.changed:,}, skipped {late.skipped:,}, failed {late.failed:,}"
    after = (
        f" What it had committed stays; attempt {following.number} meets it as already done."
        if following
        else " What it had committed stays."
    )
    said = (
        f" It said: “{words.shown(late.summary, limit=300)}”." if late.summary else ""
    )
    return (
        f"{lost} At {words.precise(late.arrived_at)[:8]} it reported after all: {counts}.{said} "
        f"Only the holder of a claim can write, so these figures are stored beside the run.{after}"
    )
