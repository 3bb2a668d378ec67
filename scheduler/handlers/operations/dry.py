"""dry: what an operation would do, counted before anybody confirms it."""

from collections import Counter
from dataclasses import dataclass

from audit import clock, keyset
from scheduler.handlers.operations import matching
from scheduler.handlers.operations.matching import Row
from scheduler.handlers.operations.models import BulkOperation
from workqueue import registry
from workqueue.verbs import Verb

LIMIT = 10_000  # rows of one operation
SHOWN = 10  # rows that the page names one by one
GROUPS = 8  # handlers
PATIENCE = 5.0  # seconds until it is not counted to the end


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The rows that match now."""

    count: int  # at most LIMIT
    more: bool  # than LIMIT
    fit: int  # in a state in which it can be done
    items: int  # different ones: runs of the same item enqueue it once
    handlers: tuple[tuple[str, int], ...]  # title, rows; most rows first
    sample: tuple[Row, ...]
    tenants: frozenset[int]  # that have any of the rows

    @property
    def skipped(self) -> int:
        """Rows that will be skipped, as far as their state says."""
        return self.count - self.fit


def look(operation: BulkOperation, verb: Verb) -> DryRun:
    """Count for a draft. Raises keyset.TooSlow."""
    found = _rows(operation)
    rows = found[:LIMIT]
    handlers = Counter(registry.title(row.handler) for row in rows)
    return DryRun(
        count=len(rows),
        more=len(found) > LIMIT,
        fit=sum(row.state in verb.states for row in rows),
        items=len({row.key for row in rows}),
        handlers=tuple(handlers.most_common(GROUPS)),
        sample=tuple(rows[:SHOWN]),
        tenants=frozenset(row.tenant_id for row in rows),
    )


def _rows(operation: BulkOperation) -> list[Row]:
    """One more than an operation takes, where there are so many."""
    until = clock.steady() + PATIENCE
    found: list[Row] = []
    after = ""
    while len(found) <= LIMIT:
        left = LIMIT + 1 - len(found)
        stretch = matching.rows(operation, after=after, limit=left)
        found += stretch.rows
        if not (after := stretch.after):
            break
        if clock.steady() > until:
            raise keyset.TooSlow
    return found
