"""sorting: the orders that Scheduler Audit Logs can be read in.

By the time of finish the whole ledger is in order, by an index. By any other time or
length no index would be worth what it costs each finish: the newest LOOKED runs that
match are put in order, the page says back to when that reaches, and leads on to the
next ones.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from audit import keyset, lengths

LOOKED = 10_000  # runs that are put in order at a time
_LENGTHS = {"ran": lengths.RAN, "waited": lengths.WAITED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """One order of the list."""

    name: str  # as it stands in the address; "": the usual one
    label: str
    by: str  # column, or annotation
    ascending: bool = False

    @property
    def whole(self) -> bool:
        """Whether an index keeps all runs in this order."""
        return self.by == "finished_at"

    @property
    def length(self) -> bool:
        """Whether it is by a length of time."""
        return self.by in _LENGTHS

    @property
    def shown(self) -> str:
        """The time that the list's first column shows."""
        return "finished_at" if self.length else self.by


SORTS = {
    sort.name: sort
    for sort in (
        Sort(name="", label="Newest finished first", by="finished_at"),
        Sort(
            name="oldest",
            label="Oldest finished first",
            by="finished_at",
            ascending=True,
        ),
        Sort(name="started", label="Last started first", by="started_at"),
        Sort(name="enqueued", label="Last enqueued first", by="enqueued_at"),
        Sort(name="ran", label="Longest run first", by="ran"),
        Sort(name="waited", label="Longest wait first", by="waited"),
    )
}


def of(name: str) -> Sort:
    """The order of that name; the usual one where there is none."""
    return SORTS.get(name, SORTS[""])


def within(walked: QuerySet[Any], sort: Sort) -> tuple[QuerySet[Any], datetime | None]:
    """The runs that are put in order, and the finish before which none is; None: all are."""
    if sort.whole:
        return walked, None
    edge = _edge(walked)
    rows = walked if edge is None else walked.filter(finished_at__gte=edge)
    if sort.length:
        rows = rows.annotate(**{sort.by: _LENGTHS[sort.by]})
    return rows.filter(**{f"{sort.by}__isnull": False}), edge


def _edge(walked: QuerySet[Any]) -> datetime | None:
    newest = walked.order_by("-finished_at").values_list("finished_at", flat=True)
    try:
        with keyset.patience(keyset.PAGE_MS):
            return next(iter(newest[LOOKED : LOOKED + 1]), None)
    except keyset.TooSlow:
        return None
