"""invariants: the rules of the queue's list that are about jobs. See workqueue.invariants."""

from jobworker import caps, sql
from workqueue import policy
from workqueue.invariants import Moment, Row, Rule, by, not_applied
from workqueue.models import Node


def _caps_not_applied(moment: Moment) -> list[Row]:
    newest = policy.history(caps.DECLARATION).first()
    wanted = caps.resolve(newest.values if newest else {})[0].as_values()
    workers = Node.objects.filter(kind=Node.Kind.JOBWORKER)
    return not_applied(newest, wanted, among=workers, moment=moment)


RULES = (
    Rule(
        id="I4",
        sentence="A job that ended has its run, one that has not ended has none.",
        ask=by(sql.JOB_AND_RUN_DIFFER),
    ),
    Rule(
        id="I5",
        sentence="A job starts at most once.",
        ask=by(sql.JOB_RUN_TWICE),
    ),
    Rule(
        id="I7",
        sentence="A job's times and claim agree with its state.",
        ask=by(sql.JOB_INCONSISTENT),
    ),
    Rule(
        id="I8",
        sentence="A running job has a live claimant, or is failed in time.",
        ask=by(sql.JOB_NOBODY_HOLDS),
    ),
    Rule(
        id="I9",
        sentence="One job of an exclusive group runs at a time.",
        ask=by(sql.JOB_NOT_EXCLUSIVE),
    ),
    Rule(
        id="I10",
        sentence="A pending job has a tenant.",
        ask=by(sql.JOB_OF_NO_TENANT),
    ),
    Rule(
        id="I11",
        sentence="Every job worker uses the caps that are stored, clamped, within 10 s.",
        ask=_caps_not_applied,
    ),
)
