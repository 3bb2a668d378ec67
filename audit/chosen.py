"""chosen: the runs that a list's filters match, for who acts on all of them.

The filters are those of Scheduler Audit Logs, read as they were when they were asked:
a "24 h" means the 24 hours before `asked_at`, and nothing that ended later matches.
"""

from dataclasses import dataclass
from datetime import datetime

from django.http import QueryDict

from audit import keyset, words
from audit.filters import Chip, RunFilters
from audit.models import Run

SIFT_MS = 2000  # milliseconds that a stretch is sifted before the next one begins
COLUMNS = (
    "id",
    "handler",
    "outcome",
    "tenant_id",
    "tenant",
    "dedup_key",
    "finished_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which runs: a list's query string, at a moment, for a reader."""

    query: str
    asked_at: datetime
    tenants: frozenset[int] | None  # None: all
    outcomes: tuple[str, ...]  # those that count; others never match
    unasked: tuple[str, ...]  # those that count where the query names none


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A run, as much of it as is needed to say what would be done to it."""

    id: str
    handler: str
    state: str
    tenant_id: int
    tenant: str
    dedup_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some of the runs, newest first."""

    rows: tuple[Brief, ...]
    after: str  # cursor of the rest; "": these were the last


def chips(which: Which) -> list[Chip]:
    """The filters in words."""
    return _filters(which).chips


def problems(which: Which) -> list[str]:
    """What could not be read: such a filter filters nothing, so nobody acts on it."""
    return [
        words.shown(str(error), limit=300)
        for errors in _filters(which).errors.values()
        for error in errors
    ]


def runs(which: Which, *, after: str = "", limit: int) -> Stretch:
    """The matching runs behind a cursor. Raises keyset.TooSlow."""
    filters = _filters(which)
    named = bool(QueryDict(which.query).getlist("outcome"))
    counts = which.outcomes if named else which.unasked
    found = keyset.page(
        filters.walked.filter(outcome__in=counts).only(*COLUMNS),
        time="finished_at",
        older=after,
        size=limit,
        sieve=filters.sieve,
        sift_ms=SIFT_MS,
    )
    if found.slow:
        raise keyset.TooSlow
    rows = tuple(
        Brief(
            id=str(run.id),
            handler=run.handler,
            state=run.outcome,
            tenant_id=run.tenant_id,
            tenant=run.tenant,
            dedup_key=run.dedup_key,
        )
        for run in found.rows
    )
    return Stretch(rows=rows, after=found.older)


def _filters(which: Which) -> RunFilters:
    mine = Run.objects.filter(kind=Run.Kind.ITEM, finished_at__lt=which.asked_at)
    if which.tenants is not None:
        mine = mine.filter(tenant_id__in=sorted(which.tenants))
    filters = RunFilters(QueryDict(which.query), queryset=mine)
    filters.asked_at = which.asked_at
    return filters
