"""verbs: what an operator does to items and to runs that ended badly, in the words of its pages.

One row per verb: what it can be done to, what is asked first, what is said afterwards.
Done at once to a few rows by the queue's own pages, and to all that match a list by a
bulk operation: both call `run`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from workqueue import operate, repeat
from workqueue.operate import Result

LONGEST_REASON = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """Something an operator does to rows of a list."""

    name: str
    permission: str
    short: str  # on buttons that ask first
    run: Callable[..., list[Result]]
    states: tuple[str, ...]  # of items, or outcomes of runs, that it can be done to
    question: str  # with {what}
    consequence: str
    button: str  # with {what}
    done: str  # with {count}
    keep: str = ""  # the button that does nothing; "": the usual one
    noun: str = "item"  # what it is done to
    danger: bool = True


VERBS = {
    "cancel": Verb(
        name="cancel",
        permission="workqueue.cancel_item",
        short="Cancel",
        run=operate.cancel,
        states=("pending", "executing"),
        question="Cancel {what}?",
        consequence="What waits leaves the queue. What executes is asked to stop and does so at its next query; what it has committed stays, and its result does not count. Each is recorded as cancelled. The next slot enqueues the handler again.",
        button="Cancel {what}",
        keep="Let it run",
        done="{count} cancelled.",
    ),
    "retry": Verb(
        name="retry",
        permission="workqueue.retry_item",
        short="Retry now",
        run=operate.retry,
        states=("pending",),
        question="Retry {what} now?",
        consequence="What waits for its next attempt, or for its time, is due at once; a worker claims it at its next look. What is due already stays where it is.",
        button="Retry {what} now",
        done="{count} due now.",
        danger=False,
    ),
    "release": Verb(
        name="release",
        permission="workqueue.retry_item",
        short="Release",
        run=operate.release,
        states=("held",),
        question="Release {what}?",
        consequence="It goes back into the queue with a clean slate: its failures and recoveries are forgotten. If it stopped its worker before, it may do so again.",
        button="Release {what}",
        done="{count} back in the queue.",
        danger=False,
    ),
    "drop": Verb(
        name="drop",
        permission="workqueue.drop_item",
        short="Drop",
        run=operate.drop,
        states=("held",),
        question="Drop {what}?",
        consequence="It leaves the queue without being run and is recorded as cancelled, with your reason. The next slot enqueues the handler again.",
        button="Drop {what}",
        done="{count} dropped.",
    ),
}
# Of runs that ended: the item is gone, so the same one is enqueued again.
REPEAT = Verb(
    name="repeat",
    permission="workqueue.retry_item",
    short="Retry",
    run=repeat.repeat,
    states=repeat.REPEATED,
    question="Retry {what}?",
    consequence="The same item is enqueued again: the handler, tenant, own key and slot of the run. What lives already is not doubled: it is skipped and says so, and what is held is released. The runs themselves stay as they are.",
    button="Retry {what}",
    done="{count} enqueued again.",
    noun="run",
    danger=False,
)


def reason_problem(why: str) -> str:
    """What is wrong with an operator's reason, in a sentence; "" where nothing is."""
    if not why:
        return "Say why: the next operator reads it."
    return (
        f"That is too long. Enter at most {LONGEST_REASON} characters."
        if len(why) > LONGEST_REASON
        else ""
    )
