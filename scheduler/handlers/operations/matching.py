"""matching: the rows of an operation, in its order, and its filters in words.

Items go oldest first, by id, up to the newest that there was when it was asked for;
runs newest first. A draft that was never saved is asked the same questions: that is
the dry run.
"""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.http import QueryDict

from audit import chosen, words
from audit.filters import Chip
from audit.views import scoped
from scheduler.handlers.operations.models import KEY, BulkOperation
from workqueue import repeat
from workqueue.filters import ItemFilters
from workqueue.models import WorkItem
from workqueue.verbs import REPEAT, VERBS, Verb

OFFERED = {
    BulkOperation.Of.ITEMS: VERBS,
    BulkOperation.Of.RUNS: {REPEAT.name: REPEAT},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Something that the verb is done to."""

    target: str  # an item's id, or a run's
    handler: str
    state: str
    tenant_id: int
    tenant: str
    dedup_key: str

    @property
    def key(self) -> tuple[int, str, str]:
        """Which item it is: one of these lives at a time."""
        return (self.tenant_id, self.handler, self.dedup_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some of the rows."""

    rows: tuple[Row, ...]
    after: str  # cursor of the rest; "": these were the last


def verb_of(of: str, name: str) -> Verb | None:
    """The verb, where the list offers it."""
    offered = {str(value): verbs for value, verbs in OFFERED.items()}
    return offered.get(of, {}).get(name)


def rows(operation: BulkOperation, *, after: str = "", limit: int) -> Stretch:
    """The rows behind a cursor. Raises keyset.TooSlow."""
    if operation.of == BulkOperation.Of.RUNS:
        found = chosen.runs(_which(operation), after=after, limit=limit)
        return Stretch(rows=tuple(map(_of_run, found.rows)), after=found.after)
    items = _filters(operation).qs.filter(id__gt=int(after or 0)).order_by("id")
    those = tuple(_of_item(item) for item in items[:limit])
    return Stretch(rows=those, after=those[-1].target if len(those) == limit else "")


def chips(operation: BulkOperation) -> list[Chip]:
    """The filters in words."""
    if operation.of == BulkOperation.Of.RUNS:
        return chosen.chips(_which(operation))
    return _filters(operation).chips


def problems(operation: BulkOperation) -> list[str]:
    """Filters that could not be read, in sentences."""
    if operation.of == BulkOperation.Of.RUNS:
        return chosen.problems(_which(operation))
    return [
        words.shown(str(error), limit=300)
        for errors in _filters(operation).errors.values()
        for error in errors
    ]


def _of_run(run: chosen.Brief) -> Row:
    return Row(
        target=run.id,
        handler=run.handler,
        state=run.state,
        tenant_id=run.tenant_id,
        tenant=run.tenant,
        dedup_key=run.dedup_key,
    )


def _of_item(item: WorkItem) -> Row:
    return Row(
        target=str(item.pk),
        handler=item.handler,
        state=item.status,
        tenant_id=item.tenant_id,
        tenant=item.tenant_slug,
        dedup_key=item.dedup_key,
    )


def _filters(operation: BulkOperation) -> ItemFilters:
    filters = ItemFilters(QueryDict(operation.query), queryset=_items(operation))
    filters.asked_at = operation.asked_at
    return filters


def _items(operation: BulkOperation) -> QuerySet[WorkItem]:
    """All that there was then, but the items of operations: one would end itself."""
    there = WorkItem.objects.filter(id__lte=operation.max_id or 0).exclude(handler=KEY)
    found: QuerySet[WorkItem] = scoped(there, operation.scope)
    return found


def _which(operation: BulkOperation) -> chosen.Which:
    return chosen.Which(
        query=operation.query,
        asked_at=operation.asked_at,
        tenants=operation.scope,
        outcomes=repeat.REPEATED,
        unasked=repeat.BAD,
    )
