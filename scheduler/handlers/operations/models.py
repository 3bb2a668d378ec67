"""Bulk operations and what became of each of their rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import models
from django.db.models import CharField, Count, Exists, OuterRef, Q
from django.db.models.functions import Cast

from workqueue.models import WorkItem

KEY = "operations.bulk"


class BulkOperationQuerySet(models.QuerySet["BulkOperation"]):
    """Questions about operations."""

    def unfinished(self) -> "BulkOperationQuerySet":
        """Those with rows before them."""
        return self.filter(finished_at=None)

    def with_lives(self) -> "BulkOperationQuerySet":
        """Each with `lives`: its item waits, runs or is held, so somebody will go on with it."""
        return self.annotate(lives=_item_lives())

    def forsaken(self) -> "BulkOperationQuerySet":
        """Those whose item has gone."""
        return self.filter(~_item_lives())


def _item_lives() -> Exists:
    items = WorkItem.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        handler=KEY,
        dedup_key=Cast(OuterRef("pk"), CharField()),
    )
    return Exists(items)


class BulkOperation(models.Model):
    """One verb for many rows, asked for by an operator."""

    class Of(models.TextChoices):
        """The list that it was asked for on."""

        # Live items of the queue.
        ITEMS = "items", "Items"
        # Runs that ended.
        RUNS = "runs", "Scheduler Audit Logs"

    # The platform's: rows of any tenant.
    tenant = models.ForeignKey(
        "workqueue.Tenant", models.CASCADE, related_name="bulk_operations"
    )
    # Tenants that its operator operated then; null: all.
    tenants = models.JSONField(null=True)
    verb = models.CharField(max_length=16)  # a key of workqueue.verbs
    of = models.CharField(max_length=8, choices=Of)
    query = models.TextField(blank=True)  # the list's query string, without its place
    # What was enqueued or ended later is left alone, and "24 h" counts back from here.
    asked_at = models.DateTimeField()
    max_id = models.BigIntegerField(null=True)  # newest item then; null: of runs
    at_most = models.PositiveIntegerField()  # rows
    expected = models.PositiveIntegerField()  # rows that matched when it was asked for
    who = models.CharField(max_length=150)
    why = models.TextField()
    cursor = models.CharField(max_length=100, default="", blank=True)  # last whole page
    began_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    stopped_by = models.CharField(max_length=150, default="", blank=True)
    stopped_why = models.TextField(default="", blank=True)

    objects = BulkOperationQuerySet.as_manager()

    class Meta:
        default_permissions = ()  # who may see items may see what was done to them
        indexes = [
            models.Index(fields=["asked_at", "id"], name="bulkoperation_newest"),
            models.Index(
                fields=["id"],
                name="bulkoperation_unfinished",
                condition=Q(finished_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.of}, operation {self.pk}"

    def state(self, *, lives: bool) -> str:
        """pending | executing | succeeded | cancelled, the words of the queue; or interrupted.

        `lives`: its item does. Without one nobody goes on with what is left.
        """
        if self.stopped_by and (self.finished_at or not lives):
            return "cancelled"
        if self.finished_at:
            return "succeeded"
        if not lives:
            return "interrupted"
        return "executing" if self.began_at else "pending"

    @property
    def scope(self) -> frozenset[int] | None:
        """The tenants on whose rows it acts; None: all."""
        return None if self.tenants is None else frozenset(self.tenants)

    def begin(self, *, now: datetime) -> bool:
        """Say that it has begun. False: it had before."""
        waiting = BulkOperation.objects.filter(pk=self.pk, began_at=None)
        return waiting.update(began_at=now) == 1

    def end(self, *, now: datetime) -> bool:
        """Say that no row is left. False: somebody else said so."""
        return (
            BulkOperation.objects.unfinished()
            .filter(pk=self.pk)
            .update(finished_at=now)
            == 1
        )

    def stop(self, *, who: str, why: str) -> bool:
        """Leave the rest alone. False: it was over, or stopped already."""
        going = BulkOperation.objects.unfinished().filter(pk=self.pk, stopped_by="")
        return going.update(stopped_by=who, stopped_why=why) == 1

    def is_stopped(self) -> bool:
        """Whether an operator stopped it, asked of the database."""
        return BulkOperation.objects.filter(pk=self.pk).exclude(stopped_by="").exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How far an operation is."""

    done: int = 0
    skipped: int = 0

    @property
    def taken(self) -> int:
        """Rows with a result."""
        return self.done + self.skipped


class BulkResultQuerySet(models.QuerySet["BulkResult"]):
    """Questions about results."""

    def counts(self, operations: Iterable[BulkOperation]) -> dict[int, Counts]:
        """How far each operation is; one without a result is missing."""
        found = self.filter(operation__in=operations).order_by().values("operation_id")
        counted = found.annotate(taken=Count("pk"), ok=Count("pk", filter=Q(done=True)))
        return {
            row["operation_id"]: Counts(
                done=row["ok"], skipped=row["taken"] - row["ok"]
            )
            for row in counted
        }


class BulkResult(models.Model):
    """What became of one row."""

    operation = models.ForeignKey(
        BulkOperation, models.CASCADE, related_name="results", db_index=False
    )
    target = models.CharField(max_length=36)  # an item's id, or a run's
    tenant_id = models.BigIntegerField()
    tenant = models.CharField(max_length=64)  # slug at the time
    handler = models.CharField(max_length=64)
    dedup_key = models.CharField(max_length=200, default="", blank=True)
    done = models.BooleanField()
    text = models.TextField()  # what was done, or why not
    at = models.DateTimeField()

    objects = BulkResultQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            # Each row is taken once, whoever repeats a page after a crash.
            models.UniqueConstraint(
                fields=["operation", "target"], name="bulkresult_once_per_operation"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target}: {self.text}"
