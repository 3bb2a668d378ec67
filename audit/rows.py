"""rows: what `audit.queries` answers with. Frozen, and nothing behind them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from audit import words
from audit.models import NodeEvent

NODE_EVENTS = {str(value): str(label) for value, label in NodeEvent.Type.choices}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """An attempt that ended."""

    id: UUID  # = claim_id
    kind: str  # item | job
    item_id: int | None
    tenant_id: int
    tenant: str  # slug at the time
    handler: str
    dedup_key: str
    tick_id: int | None
    trigger: str  # slot | start | operator | call
    slot: datetime | None
    enqueued_at: datetime
    claimed_at: datetime | None  # None: ended before any claim
    started_at: datetime | None  # None: never began
    finished_at: datetime
    node_id: UUID | None
    node: str  # host, pid
    attempt: int
    recoveries: int
    outcome: str
    seen: int
    changed: int
    skipped: int
    failed: int
    summary: str
    error: str
    details: Any  # JSON
    transcript: str  # a short one; others are lines
    line_count: int
    dropped_lines: int
    finish_id: UUID

    @property
    def ran(self) -> timedelta | None:
        """From the start to the end; None: it never began."""
        return _span(self.started_at, self.finished_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRow:
    """What an attempt reported after its claim had been taken from it."""

    claim_id: UUID
    arrived_at: datetime
    node_id: UUID | None
    node: str
    tenant_id: int
    tenant: str
    handler: str
    started_at: datetime | None
    finished_at: datetime
    outcome: str
    seen: int
    changed: int
    skipped: int
    failed: int
    summary: str
    error: str
    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """What a list of runs is asked for; what is empty filters nothing."""

    handlers: tuple[str, ...] = ()
    tenant_ids: frozenset[int] | None = None  # None: all that `tenants` allows
    outcomes: tuple[str, ...] = ()
    node_id: UUID | None = None
    tick_id: int | None = None
    kind: str = ""
    since: datetime | None = None  # finished at or after
    until: datetime | None = None  # finished before
    ran_at_least: timedelta | None = None
    text: str = ""  # in the error, the summary or the dedup key


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A stretch of a list of runs, newest first."""

    rows: tuple[RunRow, ...] = ()
    older: str = ""  # `older` of the page after this one; "": nothing older
    newer: str = ""  # `newer` of the page before; "": this is the newest
    slow: bool = False  # given up: no index serves what was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEventRow:
    """A line of a process's execution log."""

    id: int
    at: datetime
    node_id: UUID
    node: str
    kind: str
    type: str
    term: int | None
    text: str

    @property
    def word(self) -> str:
        """The type as operators read it."""
        return NODE_EVENTS.get(self.type, self.type)

    @property
    def cursor(self) -> str:
        """`before` of the page that begins after this line."""
        return f"{self.at.isoformat()}_{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRow:
    """A term of office."""

    term: int
    node_id: UUID
    node: str
    began_at: datetime
    ended_at: datetime | None  # None: nobody wrote down its end


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """What an operator changed."""

    id: int
    at: datetime
    who: str
    origin: str
    subject: str
    tenant_id: int | None
    verb: str
    old: Any  # JSON
    new: Any  # JSON
    why: str

    @property
    def old_words(self) -> str:
        """The old value, written out."""
        return _words(self.old)

    @property
    def new_words(self) -> str:
        """The new value, written out."""
        return _words(self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """Bad runs of one handler with what reads as the same error."""

    handler: str
    outcome: str
    error: str  # of the newest, its beginning
    runs: int
    more: bool  # the oldest were not counted: there are more than were read
    tenants: tuple[str, ...]  # slugs, each once
    by_hour: tuple[int, ...]  # oldest first, the last one ends now
    last_seen: datetime


def _span(since: datetime | None, until: datetime | None) -> timedelta | None:
    return None if since is None or until is None else max(until - since, timedelta())


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items())
    return words.UNKNOWN if value is None else str(value)
