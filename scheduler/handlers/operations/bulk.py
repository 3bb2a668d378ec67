"""operations.bulk: do an operator's verb to every row of one operation."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import CharField, QuerySet
from django.db.models.functions import Cast

from audit import clock, words
from scheduler.handlers.operations import matching
from scheduler.handlers.operations.matching import Row
from scheduler.handlers.operations.models import BulkOperation, BulkResult, Counts
from workqueue.context import Context, Outcome
from workqueue.operate import Result
from workqueue.verbs import Verb

logger = logging.getLogger(__name__)

PAGE = 100  # rows looked for at once; a stop is noticed between two pages
LATELY = timedelta(days=1)  # asked for: a run now goes on with it


def unfinished(now: datetime) -> QuerySet[BulkOperation, tuple[int, str]]:
    """The pairs of the timetable's row: what a run now would take up again."""
    lately = BulkOperation.objects.unfinished().filter(asked_at__gt=now - LATELY)
    keys = lately.annotate(key=Cast("pk", CharField()))
    return keys.values_list("tenant_id", "key")


def run(ctx: Context) -> Outcome:
    """Take the rows one by one; go on elsewhere where this process is to end."""
    operation = BulkOperation.objects.unfinished().filter(pk=_number(ctx)).first()
    if (
        operation is None
        or (verb := matching.verb_of(operation.of, operation.verb)) is None
    ):
        return Outcome(summary="This operation is over, or was never asked for.")
    operation.begin(now=clock.now())
    logger.info(
        "%s of %s for %s: %s", verb.name, operation.of, operation.who, operation.why
    )
    repeated = _repeated(operation)
    for row in _left(operation):
        if ctx.stopping():
            return Outcome(summary="to be continued", again_in=timedelta())
        failed = ctx.tally.failed
        with ctx.record(verb.noun, row.target):
            _take(operation, verb, row, repeated=repeated)
        if ctx.tally.failed > failed:
            _keep(operation, row, done=False, text=f"an error: see run {ctx.claim_id}")
        ctx.progress({"seen": ctx.tally.seen})
    operation.end(now=clock.now())
    return _outcome(ctx, operation)


def _number(ctx: Context) -> int:
    return int(ctx.dedup_key) if ctx.dedup_key.isdecimal() else 0


def _left(operation: BulkOperation) -> Iterator[Row]:
    """The rows without a result, page by page, until it is stopped or has had enough."""
    left = operation.at_most - operation.results.count()
    while left > 0 and not operation.is_stopped():
        found = matching.rows(operation, after=operation.cursor, limit=PAGE)
        targets = [row.target for row in found.rows]
        known = operation.results.filter(target__in=targets)
        had = set(known.values_list("target", flat=True))
        new = [row for row in found.rows if row.target not in had][:left]
        yield from new
        left -= len(new)
        if not found.after:
            return
        operation.cursor = found.after
        operation.save(update_fields=["cursor"])


def _repeated(operation: BulkOperation) -> set[tuple[int, str, str]]:
    """Items that it has enqueued already. Live items have one row each."""
    if operation.of != BulkOperation.Of.RUNS:
        return set()
    done = operation.results.filter(done=True)
    return set(done.values_list("tenant_id", "handler", "dedup_key"))


def _take(
    operation: BulkOperation,
    verb: Verb,
    row: Row,
    *,
    repeated: set[tuple[int, str, str]],
) -> None:
    """The deed and its result, together or not at all."""
    if row.key in repeated:
        text = "the same item was enqueued for a later run of it"
        _keep(operation, row, done=False, text=text)
        return
    with transaction.atomic():
        result = _do(operation, verb, row)
        _keep(operation, row, done=result.done, text=result.text)
    if operation.of == BulkOperation.Of.RUNS and result.done:
        repeated.add(row.key)


def _do(operation: BulkOperation, verb: Verb, row: Row) -> Result:
    target = int(row.target) if verb.noun == "item" else UUID(row.target)
    results = verb.run(
        [target],
        who=operation.who,
        origin="admin",
        why=f"{operation.why} (operation {operation.pk})",
        tenants=operation.scope,
    )
    return results[0]


def _keep(operation: BulkOperation, row: Row, *, done: bool, text: str) -> None:
    BulkResult.objects.create(
        operation=operation,
        target=row.target,
        tenant_id=row.tenant_id,
        tenant=row.tenant,
        handler=row.handler,
        dedup_key=row.dedup_key,
        done=done,
        text=text,
        at=clock.now(),
    )


def _outcome(ctx: Context, operation: BulkOperation) -> Outcome:
    counts = BulkResult.objects.counts([operation]).get(operation.pk, Counts())
    said = f"{words.number(counts.done)} done, {words.number(counts.skipped)} skipped"
    operation.refresh_from_db(fields=["stopped_by", "stopped_why"])
    if operation.stopped_by:
        said += f"; stopped by {operation.stopped_by}: {operation.stopped_why}"
    return ctx.outcome(
        said,
        changed=counts.done,
        skipped=counts.skipped - ctx.tally.failed,
        seen=counts.taken,
    )
