"""tally: how many runs ended, how long they waited and ran, since counting began.

For counters that only grow, whoever reads them: the counts stand in one row, which
each look moves on to a few seconds ago. So every run is read once, none is counted by
the worker that runs it, and where nobody looks nothing is counted.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import (
    Case,
    Count,
    DurationField,
    Sum,
    Value,
    When,
)

from audit import lengths
from audit.models import Run, Tally

# Upper ends in seconds; what took longer stands in one more, without an end.
BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
OUTCOMES = tuple(map(str, Run.Outcome))
# A run is committed a moment after it ended. One whose commit comes later still, since
# the database was away, is in the ledger and not in these counts.
LATE = timedelta(seconds=10)
# Whoever looks again after longer than this does not read everything in between.
LONGEST = timedelta(minutes=10)


@dataclass(slots=True, kw_only=True)
class Lengths:
    """Lengths of time, by bucket."""

    runs: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0  # of all together

    def add(self, length: timedelta, *, runs: int, total: timedelta) -> None:
        """Count `runs` that fall into the bucket of `length`."""
        self.runs[bisect_left(BUCKETS, length.total_seconds())] += runs
        self.seconds += total.total_seconds()


@dataclass(slots=True, kw_only=True)
class Counted:
    """What is counted of one handler."""

    outcomes: dict[str, int] = field(default_factory=dict)
    waited: Lengths = field(default_factory=Lengths)  # enqueue to claim, first attempts
    ran: Lengths = field(default_factory=Lengths)  # start to end


def read(*, now: datetime) -> dict[str, Counted]:
    """The counts by handler, moved on to LATE ago. While another process moves them: as they are."""
    until = now - LATE
    with transaction.atomic():
        tally = Tally.objects.select_for_update(skip_locked=True).first()
        if tally is None:  # somebody moves it now, or nobody has looked yet
            tally, _ = Tally.objects.get_or_create(id=1, defaults={"until": until})
            return _counts(tally)
        counted = _counts(tally)
        if tally.until < until:
            for row in _ended(since=max(tally.until, until - LONGEST), until=until):
                _add(counted.setdefault(row["handler"], Counted()), row)
            tally.until, tally.counts = until, _stored(counted)
            tally.save()
    return counted


def _ended(*, since: datetime, until: datetime) -> Iterable[Mapping[str, Any]]:
    """What ended after `since`, a row per handler, outcome and pair of buckets."""
    return (
        Run.objects.filter(finished_at__gt=since, finished_at__lte=until)
        .annotate(waited=lengths.WAITED, ran=lengths.RAN)
        .annotate(
            waited_to=Case(When(waited=None, then=None), default=_bucket("waited")),
            ran_to=Case(When(ran=None, then=None), default=_bucket("ran")),
        )
        .values("handler", "outcome", "waited_to", "ran_to")
        .annotate(runs=Count("pk"), waited_sum=Sum("waited"), ran_sum=Sum("ran"))
        .order_by()
    )


def _bucket(name: str) -> Case:
    """The upper end of the bucket that a length falls into; a day beyond the last."""
    ends = [timedelta(seconds=end) for end in BUCKETS]
    return Case(
        *(When(**{f"{name}__lte": end}, then=Value(end)) for end in ends),
        default=Value(timedelta(days=1)),
        output_field=DurationField(),
    )


def _add(counted: Counted, row: Mapping[str, Any]) -> None:
    runs = row["runs"]
    counted.outcomes[row["outcome"]] = counted.outcomes.get(row["outcome"], 0) + runs
    if row["waited_to"] is not None:
        counted.waited.add(row["waited_to"], runs=runs, total=row["waited_sum"])
    if row["ran_to"] is not None:
        counted.ran.add(row["ran_to"], runs=runs, total=row["ran_sum"])


def _counts(tally: Tally) -> dict[str, Counted]:
    """What is stored. With other buckets than this release's, counting begins anew."""
    if tally.counts.get("buckets") != list(BUCKETS):
        return {}
    return {
        handler: Counted(
            outcomes=of["outcomes"],
            waited=Lengths(runs=of["waited"], seconds=of["waited_s"]),
            ran=Lengths(runs=of["ran"], seconds=of["ran_s"]),
        )
        for handler, of in tally.counts["handlers"].items()
    }


def _stored(counted: Mapping[str, Counted]) -> dict[str, Any]:
    return {
        "buckets": list(BUCKETS),
        "handlers": {
            handler: {
                "outcomes": of.outcomes,
                "waited": of.waited.runs,
                "waited_s": of.waited.seconds,
                "ran": of.ran.runs,
                "ran_s": of.ran.seconds,
            }
            for handler, of in counted.items()
        },
    }
