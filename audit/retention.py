"""Retention: rows past their time, counted, read, deleted and put back.

Called by scheduler/handlers/archival, which decides what is past its time and keeps
the files. A `Rows` describes one table; other domains may describe theirs with it.
Every look-up by id carries the span of the times, so that only the partitions
concerned are opened.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import batched
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models import Exists, OuterRef, Q

from audit import clock, partitions
from audit.models import LateResult, Line, NodeEvent, Run

CHUNK = 500  # parameters of one statement
LINES_AT_ONCE = 20_000  # lines of transcripts in memory
# A run's lines are written while it runs, so never before its claim. An hour is
# left for clocks that differ; the id holds the time of the claim.
BEFORE_CLAIM = timedelta(hours=1)
FOUND_NOTHING = Q(
    kind=Run.Kind.ITEM,
    outcome=Run.Outcome.SUCCEEDED,
    seen=0,
    changed=0,
    skipped=0,
    failed=0,
)

type Record = dict[str, Any]  # column -> value, as the file has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a row stands in the order (time, id) of its table."""

    at: datetime
    id: int | UUID


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One table whose old rows can be archived or deleted."""

    name: str  # "events": policy, folder and file name
    title: str  # what operators call them
    model: str  # "audit.Event"
    time: str  # the column that their age is taken from
    keep_days: int  # of the default policy
    # Rows that nothing will change any more; all others are left alone.
    done: Q = field(default_factory=Q)
    slug: str | None = "tenant"  # column of the slug; None: the tenant is a foreign key

    def places(
        self, *, tenant_id: int, before: datetime, after: Place | None, limit: int
    ) -> list[Place]:
        """The oldest rows of a tenant that ended before `before`, behind `after`."""
        found = self._old(tenant_id=tenant_id, before=before)
        if after is not None:
            same = Q(**{self.time: after.at, "pk__gt": after.id})
            found = found.filter(
                Q(**{f"{self.time}__gt": after.at}) | same,
                **{f"{self.time}__gte": after.at},
            )
        pairs = found.order_by(self.time, "pk").values_list(self.time, "pk")[:limit]
        return [Place(at=at, id=id) for at, id in pairs]

    def count(
        self,
        *,
        tenant_id: int | None,
        before: datetime,
        at_most: int,
        but: "models.QuerySet[Any, Any] | None" = None,
    ) -> int:
        """How many such rows there are; `at_most` stands for that many or more.

        `tenant_id` None: of all tenants but those whose ids are in `but`.
        """
        found = self._table().filter(self.done, **{f"{self.time}__lt": before})
        if tenant_id is not None:
            found = found.filter(tenant_id=tenant_id)
        elif but is not None:
            found = found.exclude(tenant_id__in=but)
        return found[:at_most].count()

    def overdue(self, *, before: datetime) -> Exists:
        """A condition on tenants: has such rows."""
        return Exists(
            self._table().filter(
                self.done, tenant_id=OuterRef("pk"), **{f"{self.time}__lt": before}
            )
        )

    def strays(
        self, *, known: "models.QuerySet[Any, Any]", before: datetime, limit: int
    ) -> dict[int, str]:
        """Tenants (id -> slug) that have such rows and are not among the `known` ids any more."""
        if self.slug is None:
            return {}
        found = (
            self._table()
            .filter(self.done, **{f"{self.time}__lt": before})
            .exclude(tenant_id__in=known)
        )
        return dict(
            found.order_by().values_list("tenant_id", self.slug).distinct()[:limit]
        )

    def records(self, places: Sequence[Place]) -> Iterator[Record]:
        """The rows themselves, in the order of `places`; those that are gone are left out."""
        columns = [field.attname for field in self._model()._meta.concrete_fields]
        for part in batched(places, CHUNK, strict=False):
            found = {row[self._key()]: row for row in self._at(part).values(*columns)}
            yield from (found[place.id] for place in part if place.id in found)

    def delete(self, *, places: Sequence[Place], before: datetime) -> int:
        """Delete exactly those that still are past their time; how many there were. Caller's transaction."""
        label = self._model()._meta.label
        return sum(
            self._at(part)
            .filter(self.done, **{f"{self.time}__lt": before})
            .delete()[1]
            .get(label, 0)
            for part in batched(places, CHUNK, strict=False)
        )

    def insert(self, records: Iterable[Record]) -> int:
        """Put rows back, but those that are there; how many were missing. Caller's transaction.

        Raises IntegrityError where another row has the key of one that is missing.
        """
        return sum(self._insert(part) for part in batched(records, CHUNK, strict=False))

    def _insert(self, records: Sequence[Record]) -> int:
        rows = [_row(self._model(), record) for record in records]
        self._make_room(rows)
        places = [Place(at=getattr(row, self.time), id=row.pk) for row in rows]
        there = set(self._at(places).values_list("pk", flat=True))
        missing = [row for row in rows if row.pk not in there]
        self._table().bulk_create(missing)
        return len(missing)

    def _make_room(self, rows: Sequence[models.Model]) -> None:
        """The months of old rows may have been dropped."""
        table = self._model()._meta.db_table
        if table in partitions.PARENTS:
            partitions.make_room(table, {getattr(row, self.time) for row in rows})

    def _model(self) -> type[models.Model]:
        return apps.get_model(self.model)

    def _table(self) -> "models.QuerySet[Any, Any]":
        return self._model()._base_manager.all()

    def _key(self) -> str:
        return self._model()._meta.pk.attname

    def _old(self, *, tenant_id: int, before: datetime) -> "models.QuerySet[Any, Any]":
        return self._table().filter(
            self.done, tenant_id=tenant_id, **{f"{self.time}__lt": before}
        )

    def _at(self, places: Sequence[Place]) -> "models.QuerySet[Any, Any]":
        span = (min(place.at for place in places), max(place.at for place in places))
        return self._table().filter(
            pk__in=[place.id for place in places], **{f"{self.time}__range": span}
        )


@dataclass(frozen=True, kw_only=True)
class RunRows(Rows):
    """Runs, each with the lines of its transcript and what arrived late."""

    def records(self, places: Sequence[Place]) -> Iterator[Record]:
        """As for every table, with `lines` and `late` in each."""
        for part in batched(places, CHUNK, strict=False):
            ids = [UUID(str(place.id)) for place in part]
            counts = dict(
                _lines(ids)
                .values_list("claim_id")
                .annotate(models.Count("seq"))
                .order_by()
            )
            for group in _groups(Rows.records(self, part), counts):
                yield from _with_lines(group)

    def delete(self, *, places: Sequence[Place], before: datetime) -> int:
        """Delete runs with their lines and late results."""
        for part in batched(places, CHUNK, strict=False):
            ids = [UUID(str(place.id)) for place in part]
            _lines(ids).delete()
            LateResult.objects.filter(claim_id__in=ids).delete()
        return Rows.delete(self, places=places, before=before)

    def _insert(self, records: Sequence[Record]) -> int:
        inserted = Rows._insert(
            self,
            [
                {k: v for k, v in r.items() if k not in ("lines", "late")}
                for r in records
            ],
        )
        names = ("seq", "at", "level", "text")
        lines = [
            _row(
                Line, {"claim_id": record["id"], **dict(zip(names, line, strict=True))}
            )
            for record in records
            for line in record.get("lines", [])
        ]
        partitions.make_room(Line._meta.db_table, {line.at for line in lines})
        Line.objects.bulk_create(lines, ignore_conflicts=True, batch_size=CHUNK)
        late = [
            _row(LateResult, row)
            for record in records
            for row in record.get("late", [])
        ]
        LateResult.objects.bulk_create(late, ignore_conflicts=True, batch_size=CHUNK)
        return inserted


RUNS = RunRows(
    name="runs",
    title="Runs with their transcripts",
    model="audit.Run",
    time="finished_at",
    keep_days=90,
)
EVENTS = Rows(
    name="events", title="Events", model="audit.Event", time="occurred_at", keep_days=90
)


def delete_empty(
    *, handler: str, before: datetime, after: datetime | None, limit: int
) -> tuple[int, datetime | None]:
    """Of a handler's next `limit` runs behind `after`, of all tenants, delete those that found nothing.

    How many that were, and up to when it looked; None: up to `before`. So no statement
    steps over more than `limit` of the runs that are kept. Caller's transaction.
    """
    old = Run.objects.filter(handler=handler, finished_at__lt=before)
    if after is not None:
        old = old.filter(finished_at__gt=after)
    times = old.order_by("finished_at").values_list("finished_at", flat=True)
    until = times[limit - 1 : limit].first()
    if until is not None:
        old = old.filter(finished_at__lte=until)
    pairs = old.filter(FOUND_NOTHING).values_list("finished_at", "id")
    places = [Place(at=at, id=id) for at, id in pairs]
    found = RUNS.delete(places=places, before=before) if places else 0
    return found, until


def delete_node_events(*, before: datetime, limit: int) -> int:
    """Delete the oldest entries of the nodes' execution logs. Caller's transaction."""
    ids = list(
        NodeEvent.objects.filter(at__lt=before)
        .order_by("at")
        .values_list("id", flat=True)[:limit]
    )
    return sum(
        NodeEvent.objects.filter(id__in=part).delete()[0]
        for part in batched(ids, CHUNK, strict=False)
    )


def drop_partitions(*, now: datetime) -> int:
    """Drop the months in which nothing is left; how many tables that were. Outside transactions."""
    return len(partitions.drop_empty(now))


def _groups(
    records: Iterable[Record], counts: Mapping[UUID, int]
) -> Iterator[list[Record]]:
    """Cut a chunk where its transcripts would take too much memory at once."""
    group: list[Record] = []
    weight = 0
    for record in records:
        more = counts.get(record["id"], 0)
        if group and weight + more > LINES_AT_ONCE:
            yield group
            group, weight = [], 0
        group.append(record)
        weight += more
    if group:
        yield group


def _with_lines(records: Sequence[Record]) -> Iterator[Record]:
    ids = [record["id"] for record in records]
    lines: dict[UUID, list[list[Any]]] = {}
    late: dict[UUID, list[Record]] = {}
    found = _lines(ids).order_by("claim_id", "seq")
    for claim, *line in found.values_list("claim_id", "seq", "at", "level", "text"):
        lines.setdefault(claim, []).append(line)
    for row in LateResult.objects.filter(claim_id__in=ids).order_by("id").values():
        late.setdefault(row["claim_id"], []).append({**row})
    for record in records:
        id = record["id"]
        yield {**record, "lines": lines.get(id, []), "late": late.get(id, [])}


def _lines(ids: Sequence[UUID]) -> "models.QuerySet[Line]":
    if not ids:
        return Line.objects.none()
    return Line.objects.filter(
        claim_id__in=ids, at__gte=min(map(clock.uuid7_time, ids)) - BEFORE_CLAIM
    )


def _row[M: models.Model](model: type[M], record: Mapping[str, Any]) -> M:
    return model(**dict(_values(model, record)))


def _values(
    model: type[models.Model], record: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    for column in model._meta.concrete_fields:
        if column.attname in record:
            value = record[column.attname]
            target = (
                column.target_field if isinstance(column, models.ForeignKey) else column
            )
            yield column.attname, None if value is None else target.to_python(value)
