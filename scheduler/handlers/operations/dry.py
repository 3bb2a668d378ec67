"""dry: what an operation would do, counted before anybody confirms it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from audit import clock, keyset
from scheduler.handlers.operations import matching
from scheduler.handlers.operations.matching import Row
from scheduler.handlers.operations.models import BulkOperation
from workqueue import registry
from workqueue.models import WorkItem
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
    fit: int  # it can be done to, as things stand
    living: int  # runs whose item waits or executes already
    items: int  # different ones: runs of the same item enqueue it once
    handlers: tuple[tuple[str, int], ...]  # title, rows; most rows first
    sample: tuple[Row, ...]
    tenants: Mapping[int, int]  # id -> its rows

    @property
    def skipped(self) -> int:
        """Rows that will be skipped for their state."""
        return self.count - self.fit - self.living


def look(operation: BulkOperation, verb: Verb) -> DryRun:
    """Count for a draft. Raises keyset.TooSlow."""
    found = _rows(operation)
    rows = found[:LIMIT]
    handlers = Counter(registry.title(row.handler) for row in rows)
    fit = [row for row in rows if row.state in verb.states]
    living = _living(fit) if operation.of == BulkOperation.Of.RUNS else set()
    free = sum(row.key not in living for row in fit)
    return DryRun(
        count=len(rows),
        more=len(found) > LIMIT,
        fit=free,
        living=len(fit) - free,
        items=len({row.key for row in rows}),
        handlers=tuple(handlers.most_common(GROUPS)),
        sample=tuple(rows[:SHOWN]),
        tenants=Counter(row.tenant_id for row in rows),
    )


def _living(rows: Iterable[Row]) -> Set[tuple[int, str, str]]:
    """The items of these runs that wait or execute: they are not enqueued twice. Held ones are released."""
    keys = {row.key for row in rows}
    live = WorkItem.objects.exclude(status=WorkItem.Status.HELD).filter(
        tenant_id__in={tenant for tenant, _, _ in keys},
        handler__in={handler for _, handler, _ in keys},
    )
    return keys & frozenset(live.values_list("tenant_id", "handler", "dedup_key"))


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
