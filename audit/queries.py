"""queries: the questions the ledger is asked. Frozen rows, never models.

`tenants` is who asks: the ids that he may see, None for all. A question about one run
carries the time inside its id, so that PostgreSQL opens only the partitions in which
it can stand. No question counts or sorts a whole table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import (
    Count,
    DateTimeField,
    F,
    Model,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Coalesce, TruncMinute

from audit import clock, failures, keyset, recent, sql, transcript
from audit.models import Change, LateResult, Line, NodeEvent, Run
from audit.rows import (
    ChangeRow,
    FailureRow,
    LateRow,
    NodeEventRow,
    RunFilter,
    RunPage,
    RunRow,
    TermRow,
)

# Runs and lines are younger than the time in their id, but for clocks that differ.
BEFORE_CLAIM = timedelta(hours=1)
LOOKED_BACK = 20_000  # rows of a tenant, and of a handler, in which `last_run` looks
ATTEMPTS = 50  # of an item, at most, on a page
LONGEST_TEXT = 10_000  # characters that are looked for; SQLite refuses 50,000
PER_MINUTE = 5_000  # runs of a minute that `throughput` counts before it extrapolates


def run(claim_id: UUID, *, tenants: frozenset[int] | None = None) -> RunRow | None:
    """The run of a claim. None: there is none, or not for this reader."""
    found = _by_ids([claim_id])
    if found is None:
        return None
    return next(map(_run, _scoped(found, tenants)), None)


def late_of(claim_id: UUID) -> tuple[LateRow, ...]:
    """What arrived late of a claim, in its order."""
    found = LateResult.objects.filter(claim_id=claim_id).order_by("arrived_at", "id")
    return tuple(_row(LateRow, late) for late in found)


def lates(claim_ids: Iterable[UUID]) -> dict[UUID, LateRow]:
    """The last late result of each claim that has one."""
    found = LateResult.objects.filter(claim_id__in=list(claim_ids)).order_by(
        "arrived_at", "id"
    )
    return {late.claim_id: _row(LateRow, late) for late in found}


def finish_ids(claim_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Which finish wrote the runs of these claims; claims without a run are missing."""
    found = _by_ids(claim_ids)
    return {} if found is None else dict(found.values_list("id", "finish_id"))


def attempts(
    item_id: int, *, tenants: frozenset[int] | None = None, around: int | None = None
) -> tuple[RunRow, ...]:
    """The newest ATTEMPTS of an item that ended, or those around this number; first to last.

    The index leaves out first attempts that succeeded, which nearly all runs are. An
    item that ran again after one is completed from its tenant's runs of that time.
    """
    indexed = Q(attempt__gt=1) | ~Q(outcome=Run.Outcome.SUCCEEDED)
    found = _scoped(Run.objects.filter(indexed, item_id=item_id), tenants)
    if around is not None:
        found = found.filter(attempt__lte=around + ATTEMPTS // 2)
    # By the number first: an index of the times would be walked past everybody's runs.
    rows = list(found.order_by("-attempt", "-finished_at", "-id")[:ATTEMPTS])
    if rows and len(rows) < ATTEMPTS and rows[-1].attempt > 1:
        first = rows[-1]
        mine = Run.objects.filter(tenant_id=first.tenant_id, item_id=item_id)
        rows += mine.exclude(indexed).filter(
            finished_at__range=(first.enqueued_at - BEFORE_CLAIM, first.finished_at)
        )
    rows.sort(key=lambda row: (row.finished_at, row.id))
    return tuple(map(_run, rows))


def runs(
    asked: RunFilter,
    *,
    tenants: frozenset[int] | None,
    older: str = "",
    newer: str = "",
    limit: int = keyset.SIZE,
) -> RunPage:
    """A page of the runs that match, newest first, by the place (finished_at, id)."""
    found = _asked(asked, tenants)
    if found is None:
        return RunPage()
    page = keyset.page(found, time="finished_at", older=older, newer=newer, size=limit)
    return RunPage(
        rows=tuple(map(_run, page.rows)),
        older=page.older,
        newer=page.newer,
        slow=page.slow,
    )


def lines(claim_id: UUID, *, after: int, limit: int) -> list[transcript.LineRow]:
    """The lines behind number `after`, of a run that goes on or has ended, long or short."""
    since = _since([claim_id])
    if since is None:
        return []
    found = Line.objects.filter(
        claim_id=claim_id, seq__gt=after, at__gte=since
    ).order_by("seq")
    rows = list(found.values_list("claim_id", "seq", "at", "level", "text")[:limit])
    if rows:
        return [transcript.LineRow(*row) for row in rows]
    short = (
        Run.objects.filter(id=claim_id, finished_at__gte=since)
        .values_list("transcript", flat=True)
        .first()
    )
    return [
        line for line in transcript.parse(short or "", claim_id) if line.seq > after
    ][:limit]


def line_count(claim_id: UUID) -> int:
    """How many lines of an attempt are stored."""
    since = _since([claim_id])
    found = Line.objects.filter(claim_id=claim_id)
    return found.filter(at__gte=since).count() if since else 0


def last_run(handler: str, *, tenant_id: int) -> RunRow | None:
    """The newest run of a handler for a tenant.

    No index has both. It is looked for among the tenant's newest runs, then among the
    handler's: what is rare for the one is near the top for the other.
    """
    for near in (Q(tenant_id=tenant_id), Q(handler=handler)):
        newest = (
            Run.objects.filter(near)
            .order_by("-finished_at")[:LOOKED_BACK]
            .values("pk", "finished_at", "handler", "tenant_id")
        )
        pairs = (
            (row["pk"], row["finished_at"])
            for row in newest
            if row["handler"] == handler and row["tenant_id"] == tenant_id
        )
        if (found := next(pairs, None)) is not None:
            return next(
                map(_run, Run.objects.filter(id=found[0], finished_at=found[1])), None
            )
    return None


def medians(handlers: Sequence[str]) -> dict[str, timedelta]:
    """How long the newest runs of each handler took, in the middle; without runs it is missing.

    Of those that went all the way: one that was cancelled at once says nothing of it.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(sql.MEDIANS, {"handlers": list(handlers), "per": 50})
            return dict(cursor.fetchall())
    found = {}
    for handler, newest in recent.by_handler(handlers, per=50).items():
        if took := [
            one.ran
            for one in newest
            if one.ran is not None and one.outcome in ("succeeded", "partial")
        ]:
            found[handler] = sorted(took)[len(took) // 2]
    return found


def throughput(
    *, minutes: int, tenants: frozenset[int] | None, now: datetime
) -> list[int]:
    """How many runs ended in each of the last whole minutes, oldest first.

    A minute with over PER_MINUTE is extrapolated from how soon that many had ended.
    """
    end = now.replace(second=0, microsecond=0)
    starts = [end - timedelta(minutes=back) for back in range(minutes, 0, -1)]
    if tenants is None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                sql.PER_MINUTE, {"since": starts[0], "until": end, "most": PER_MINUTE}
            )
            counted = {row[0]: _extrapolated(*row) for row in cursor.fetchall()}
    else:
        found = _scoped(
            Run.objects.filter(finished_at__gte=starts[0], finished_at__lt=end), tenants
        )
        grouped = (
            found.annotate(minute=TruncMinute("finished_at"))
            .values("minute")
            .annotate(runs=Count("pk"))
            .order_by()
        )
        counted = dict(grouped.values_list("minute", "runs"))
    return [counted.get(start, 0) for start in starts]


def failures_since(
    since: datetime,
    *,
    tenants: frozenset[int] | None = None,
    now: datetime,
    limit: int = 20,
) -> list[FailureRow]:
    """Bad runs grouped by handler, outcome and error, most runs first."""
    return failures.grouped(since, tenants=tenants, now=now)[:limit]


def failed_since(since: datetime, *, tenants: frozenset[int] | None = None) -> int:
    """How many runs failed; keyset.CAP + 1 stands for more."""
    found = Run.objects.filter(
        outcome__in=(Run.Outcome.FAILED, Run.Outcome.ABANDONED), finished_at__gte=since
    )
    return _scoped(found, tenants)[: keyset.CAP + 1].count()


def counts_by_tick(
    tick_ids: Sequence[int], *, since: datetime
) -> dict[int, dict[str, int]]:
    """How many runs of each tick ended how. `since`: the oldest of these ticks; no index has them."""
    found = Run.objects.filter(tick_id__in=list(tick_ids), finished_at__gte=since)
    counted: dict[int, dict[str, int]] = {id: {} for id in tick_ids}
    for tick_id, outcome, number in (
        found.values_list("tick_id", "outcome").annotate(Count("pk")).order_by()
    ):
        counted[tick_id or 0][outcome] = number
    return counted


def node_events(
    *, node_id: UUID | None = None, before: str = "", limit: int
) -> list[NodeEventRow]:
    """Execution logs, newest first, of one process or all. `before`: a row's cursor."""
    found = (
        NodeEvent.objects.all()
        if node_id is None
        else NodeEvent.objects.filter(node_id=node_id)
    )
    page = keyset.page(found, time="at", older=before, size=limit)
    return [_row(NodeEventRow, event) for event in page.rows]


def terms(*, since: datetime) -> list[TermRow]:
    """The terms that began since then, and the one that was in force, oldest first."""
    elected = NodeEvent.objects.filter(type=NodeEvent.Type.ELECTED, at__lt=since)
    before = elected.order_by("-at", "-id").values("at")[:1]
    begin = Coalesce(Subquery(before), Value(since), output_field=DateTimeField())
    events = list(
        NodeEvent.objects.filter(type__in=_OF_TERMS, at__gte=begin).order_by("at", "id")
    )
    return [
        TermRow(
            term=event.term,
            node_id=event.node_id,
            node=event.node,
            began_at=event.at,
            ended_at=next(
                (later.at for later in events[place + 1 :] if _ends(later, event)), None
            ),
        )
        for place, event in enumerate(events)
        if event.type == NodeEvent.Type.ELECTED and event.term is not None
    ]


def changes(
    *, tenants: frozenset[int] | None = None, since: datetime | None = None, limit: int
) -> list[ChangeRow]:
    """What operators changed, newest first. The platform's own changes are for those who see all."""
    found = _scoped(Change.objects.all(), tenants)
    found = found if since is None else found.filter(at__gte=since)
    return [_row(ChangeRow, change) for change in found.order_by("-at", "-id")[:limit]]


def changes_of(subject: str, *, limit: int) -> list[ChangeRow]:
    """What was changed of one thing, newest first."""
    if not _can_be_stored(subject):
        return []
    found = Change.objects.filter(subject=subject).order_by("-at", "-id")[:limit]
    return [_row(ChangeRow, change) for change in found]


_OF_TERMS = (
    NodeEvent.Type.ELECTED,
    NodeEvent.Type.RESIGNED,
    NodeEvent.Type.DEPOSED,
    NodeEvent.Type.SILENT,
    NodeEvent.Type.STOPPED,
)


def _ends(later: NodeEvent, elected: NodeEvent) -> bool:
    """Whether an event ends the term of an election: of the term, or of its node's life."""
    if later.node_id != elected.node_id or later.type == NodeEvent.Type.ELECTED:
        return False
    return later.term == elected.term or later.type in (
        NodeEvent.Type.SILENT,
        NodeEvent.Type.STOPPED,
    )


def _since(claim_ids: Iterable[UUID]) -> datetime | None:
    """Before this no row of these claims was written. None: these are no ids of ours."""
    try:
        return min(map(clock.uuid7_time, claim_ids)) - BEFORE_CLAIM
    except (ValueError, OverflowError):  # no ids, or a time beyond the calendar
        return None


def _by_ids(claim_ids: Sequence[UUID]) -> "QuerySet[Run] | None":
    since = _since(claim_ids)
    return (
        None
        if since is None
        else Run.objects.filter(id__in=list(claim_ids), finished_at__gte=since)
    )


def _scoped[M: Model](rows: QuerySet[M], tenants: frozenset[int] | None) -> QuerySet[M]:
    return rows if tenants is None else rows.filter(tenant_id__in=sorted(tenants))


def _asked(asked: RunFilter, tenants: frozenset[int] | None) -> "QuerySet[Run] | None":
    """The rows asked for. None: no row can match."""
    if not all(
        map(_can_be_stored, (asked.text, asked.kind, *asked.handlers, *asked.outcomes))
    ):
        return None
    if asked.tick_id is not None and abs(asked.tick_id) >= 2**63:
        return None
    if len(asked.text) > LONGEST_TEXT:
        return None
    equal = {
        "handler__in": asked.handlers,
        "outcome__in": asked.outcomes,
        "node_id": asked.node_id,
        "tick_id": asked.tick_id,
        "kind": asked.kind,
        "finished_at__gte": asked.since,
        "finished_at__lt": asked.until,
    }
    found = _scoped(_scoped(Run.objects.all(), tenants), asked.tenant_ids)
    found = found.filter(
        **{name: value for name, value in equal.items() if value not in (None, "", ())}
    )
    if asked.ran_at_least is not None:
        found = found.filter(finished_at__gte=F("started_at") + asked.ran_at_least)
    if asked.text:
        word = asked.text
        found = found.filter(
            Q(error__icontains=word)
            | Q(summary__icontains=word)
            | Q(dedup_key__contains=word)
        )
    return found


def _can_be_stored(text: str) -> bool:
    """Text with a NUL or half a surrogate stands in no row, and PostgreSQL refuses to look for it."""
    try:
        return "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def _extrapolated(start: datetime, runs: int, last: datetime | None) -> int:
    if runs < PER_MINUTE or last is None:
        return runs
    return round(runs * 60 / max(0.001, (last - start).total_seconds()))


def _run(row: Run) -> RunRow:
    return _row(RunRow, row)


def _row[R](type: type[R], row: Model) -> R:
    return type(**{field.name: getattr(row, field.name) for field in fields(type)})  # type: ignore[arg-type]
