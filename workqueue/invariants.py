"""invariants: design rules that must hold at every moment, as questions to the tables.

Read-only. Called by `checkinvariants` and by the tests that kill processes. It reads the
tables of the ledger and of the scheduler by name, since the queue imports neither; where
the scheduler is not installed its rules are left out. An app above adds its own (`add`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.db.models import QuerySet

from audit import clock
from workqueue import node, policy, sql
from workqueue.models import Node, Setting
from workqueue.policy import WorkerPolicy

MOST = 50  # broken rows shown per rule
APPLIED_WITHIN = timedelta(seconds=10)

type Row = dict[str, Any]
type Question = Callable[["Moment"], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When the questions are asked, and what follows from it."""

    now: datetime  # the database's
    since: datetime  # how far back the ledger is read
    policy: WorkerPolicy

    def params(self) -> dict[str, Any]:
        """The instants that statements compare with."""
        beat = node.interval()
        poll = max(self.policy.poll_interval, self.policy.reclaim_interval)
        # Stopped limit, a beat and a poll; and the keep-alive that a judge must have
        # been alive for itself, which counts after an outage.
        silent = node.stopped_after(Node.Kind.WORKER) + beat + poll + beat / node.BEAT
        instants = {
            "since": self.since,
            "ended": self.now - beat - poll,
            "silent": self.now - silent,
            "unrenewed": self.now - self.policy.claim_timeout - beat - poll,
            "fresh": self.now - 2 * beat,
        }
        adapt = connection.ops.adapt_datetimefield_value
        return {name: adapt(value) for name, value in instants.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that must never be found."""

    id: str  # of the design: "I4"
    sentence: str  # what holds
    ask: Question  # -> the rows that break it
    needs: str = "workqueue"  # app whose tables it reads besides the ledger's


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A rule that does not hold."""

    rule: Rule
    rows: list[Row] = field(default_factory=list)
    more: bool = False  # there are more rows


def check(*, hours: float = 24) -> list[Broken]:
    """Ask everything; the rules that do not hold. `hours`: how far back."""
    with _one_snapshot():
        moment = _moment(hours)
        answers = [(rule, rule.ask(moment)) for rule in applicable()]
    return [
        Broken(rule=rule, rows=rows[:MOST], more=len(rows) > MOST)
        for rule, rows in answers
        if rows
    ]


def add(rules: Iterable[Rule]) -> None:
    """Ask these too. For an app's `ready`; more than once does no harm."""
    RULES.extend(rule for rule in rules if rule not in RULES)


def applicable() -> list[Rule]:
    """The rules whose tables exist here."""
    return [rule for rule in RULES if apps.is_installed(rule.needs)]


def by(statement: str) -> Question:
    """Ask one statement; it may use the instants of Moment.params."""

    def ask(moment: Moment) -> list[Row]:
        with connection.cursor() as cursor:
            cursor.execute(statement, moment.params())
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchmany(MOST + 1)
        return [dict(zip(names, row, strict=True)) for row in rows]

    return ask


def _policy_not_applied(moment: Moment) -> list[Row]:
    """Processes that report another version, or other values, than are stored."""
    newest = policy.history().first()
    wanted = policy.as_values(policy.resolve(newest.values if newest else {})[0])
    others = Node.objects.exclude(kind=Node.Kind.JOBWORKER)
    return not_applied(newest, wanted, among=others, moment=moment)


def not_applied(
    newest: Setting | None,
    wanted: Mapping[str, Any],
    *,
    among: QuerySet[Node],
    moment: Moment,
) -> list[Row]:
    """Of these processes those that report another version of a setting, or other values."""
    # A report is as old as the last beat.
    if newest and newest.at > moment.now - APPLIED_WITHIN - node.interval():
        return []
    version = newest.version if newest else 0
    fresh = among.exclude(status=Node.Status.STOPPED).filter(
        heartbeat_at__gte=moment.now - 2 * node.interval()
    )
    return [
        {
            "node": str(one),
            "applies": report["settings_version"],
            "stored": version,
            "uses": report.get("policy"),
        }
        for one in fresh
        if isinstance(report := one.report, dict) and "settings_version" in report
        if report["settings_version"] != version
        or report.get("policy", wanted) != wanted
    ]


RULES = [
    Rule(
        id="I1",
        sentence="A slot is ticked once.",
        ask=by(sql.TICKED_TWICE),
        needs="scheduler",
    ),
    Rule(
        id="I1",
        sentence="One item lives per tenant, handler and key.",
        ask=by(sql.LIVE_TWICE),
    ),
    Rule(
        id="I2",
        sentence="What a tick enqueued is live or has a run.",
        ask=by(sql.ITEMS_LOST),
        needs="scheduler",
    ),
    Rule(id="I3", sentence="A claim holds one item.", ask=by(sql.CLAIMED_TWICE)),
    Rule(
        id="I3",
        sentence="An item has a claim and a holder while it is executing, and only then.",
        ask=by(sql.CLAIM_AND_STATUS_DIFFER),
    ),
    Rule(id="I4", sentence="An attempt has one run.", ask=by(sql.RUN_TWICE)),
    Rule(
        id="I4",
        sentence="An attempt that has its run holds no item.",
        ask=by(sql.RECORDED_AND_HELD),
    ),
    Rule(
        id="I5",
        sentence="An item of a row that says fail is not run again after its process died.",
        ask=by(sql.STARTED_AGAIN),
    ),
    Rule(
        id="I6", sentence="There is one lease.", ask=by(sql.MASTERS), needs="scheduler"
    ),
    Rule(
        id="I6",
        sentence="A term has one master.",
        ask=by(sql.TERM_TAKEN_TWICE),
        needs="scheduler",
    ),
    Rule(
        id="I6",
        sentence="A master writes nothing outside its term.",
        ask=by(sql.TICKED_OUTSIDE_ITS_TERM),
        needs="scheduler",
    ),
    Rule(
        id="I7",
        sentence="Attempts are counted, and after 3 recoveries an item is held.",
        ask=by(sql.COUNTED_WRONG),
    ),
    Rule(
        id="I8",
        sentence="An executing item has a live holder, or is returned in time.",
        ask=by(sql.NOBODY_HOLDS_IT),
    ),
    Rule(id="I10", sentence="An item has a tenant.", ask=by(sql.OF_NO_TENANT)),
    Rule(id="I10", sentence="An item has one tenant.", ask=by(sql.OF_TWO_TENANTS)),
    Rule(
        id="I11",
        sentence="Every process uses what is stored, clamped, within 10 s.",
        ask=_policy_not_applied,
    ),
    Rule(
        id="I12",
        sentence="A transcript has the lines that its run counts.",
        ask=by(sql.LINES_MISSING),
    ),
    Rule(
        id="I14",
        sentence="A change says who, what, and old or new.",
        ask=by(sql.CHANGED_BY_NOBODY),
    ),
]


@contextmanager
def _one_snapshot() -> Iterator[None]:
    """All questions see the same moment, and cannot write, where the database can say so.

    On SQLite a transaction would take the write lock; each statement sees one moment.
    """
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(sql.ALL_READ_ONLY)
        yield


def _moment(hours: float) -> Moment:
    newest = policy.history().first()
    with connection.cursor() as cursor:
        cursor.execute(sql.DATABASE_TIME, {"now": _fixed()})
        now = node.as_moment(cursor.fetchone()[0])
    used, _ = policy.resolve(newest.values if newest else {})
    return Moment(now=now, since=now - timedelta(hours=hours), policy=used)


def _fixed() -> Any:
    fixed = clock.fixed()
    return connection.ops.adapt_datetimefield_value(fixed) if fixed else None


def as_json(broken: list[Broken]) -> str:
    """One object, for scripts."""
    return json.dumps(
        {
            "ok": not broken,
            "checked": sorted(
                {rule.id for rule in applicable()}, key=lambda id: int(id[1:])
            ),
            "broken": [
                {
                    "id": one.rule.id,
                    "sentence": one.rule.sentence,
                    "rows": one.rows,
                    "more": one.more,
                }
                for one in broken
            ],
        },
        indent=2,
        default=str,
    )
