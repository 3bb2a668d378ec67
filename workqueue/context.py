"""What a handler is given, and what it gives back."""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from workqueue.exceptions import ClaimLost

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run did. `failed` with others handled or skipped is partial."""

    seen: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    summary: str = ""
    error: str = ""  # first failure, in one line
    details: dict[str, Any] | None = None
    again_in: timedelta | None = None  # run me again after this

    @property
    def word(self) -> str:
        """The ledger's word for it."""
        if not self.failed:
            return "succeeded"
        return (
            "partial"
            if self.changed or self.skipped or self.seen > self.failed
            else "failed"
        )


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counters that `record` keeps for the handler."""

    seen: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    error: str = ""  # the first failure


@dataclass(slots=True, kw_only=True)
class Context:
    """One attempt, as its handler sees it."""

    key: str  # timetable key
    tenant_id: int
    tenant: str  # slug
    dedup_key: (
        str  # "" for ticks; the pair's key for rows whose scope is a query of pairs
    )
    now: datetime  # database time at the start
    slot: datetime | None  # the instant this run stands for; None: a call
    trigger: str  # slot | start | operator | call
    attempt: int  # 1 = first start
    claim_id: UUID
    deadline: datetime  # when the time limit fails it
    stopping: Callable[[], bool]  # True once the process drains or the claim is lost
    progress: Callable[[dict[str, Any]], None]  # shown on the run's page while it runs
    tally: Tally = field(default_factory=Tally)
    _seen_types: set[type[BaseException]] = field(default_factory=set)

    @contextmanager
    def record(self, kind: str, pk: object) -> Iterator[None]:
        """Handle one record: what it raises is counted and written, never passed on.

        Opens no transaction. The traceback goes to the transcript once per type of
        exception, later ones are one line. SystemExit and the like pass through.
        """
        self.tally.seen += 1
        try:
            yield
        except ClaimLost:
            raise  # nothing that this attempt does counts any more
        except Exception as problem:  # one bad record never stops the others
            self.tally.failed += 1
            line = f"{kind} {pk}: {type(problem).__name__}: {text_of(problem)[:500]}"
            self.tally.error = self.tally.error or line
            logger.error("%s", line)
            if type(problem) not in self._seen_types:
                self._seen_types.add(type(problem))
                logger.error("%s", traceback.format_exc())

    def outcome(self, summary: str = "", **more: Any) -> Outcome:
        """The outcome that the tally stands for."""
        t = self.tally
        counts = {
            "seen": t.seen,
            "changed": t.changed,
            "skipped": t.skipped,
            "failed": t.failed,
            "error": t.error,
        }
        return Outcome(summary=summary, **{**counts, **more})


def text_of(problem: BaseException) -> str:
    """The exception's text, whatever its __str__ does."""
    try:
        return str(problem)
    except BaseException:
        return "(its text could not be made)"
