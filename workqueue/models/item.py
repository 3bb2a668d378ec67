"""Work items: one handler to run for one tenant. Live ones only; the ledger has the rest."""

from django.db import models


class WorkItemQuerySet(models.QuerySet["WorkItem"]):
    """Questions the queue is asked."""

    def pending(self) -> "WorkItemQuerySet":
        """Items any worker that knows the handler may claim."""
        return self.filter(status=WorkItem.Status.PENDING)

    def executing(self) -> "WorkItemQuerySet":
        """Items that a process holds."""
        return self.filter(status=WorkItem.Status.EXECUTING)

    def held(self) -> "WorkItemQuerySet":
        """Items that wait for an operator."""
        return self.filter(status=WorkItem.Status.HELD)


class WorkItem(models.Model):
    """One handler to run for one tenant."""

    class Status(models.TextChoices):
        """Where a live item is. Finishing deletes it."""

        # Waiting for a worker that knows its handler.
        PENDING = "pending", "Waiting"
        # Claimed; the node named in node_id holds it.
        EXECUTING = "executing", "Executing"
        # Waiting for an operator: poison, or its row says hold.
        HELD = "held", "Held"

    class Abandon(models.TextChoices):
        """What becomes of it when its process stops reporting."""

        # Back to pending; runs at least once.
        REQUEUE = "requeue", "Run again"
        # Failed; starts at most once.
        FAIL = "fail", "Fail"
        # Held for an operator; starts at most once by itself.
        HOLD = "hold", "Hold"

    # No database constraint: removing a tenant first records its items as cancelled.
    tenant = models.ForeignKey(
        "workqueue.Tenant", models.DO_NOTHING, db_constraint=False, db_index=False
    )
    tenant_slug = models.CharField(
        max_length=64
    )  # as it was at enqueue, for the ledger
    handler = models.CharField(max_length=64)  # timetable key: "webhooks.retry"
    dedup_key = models.CharField(max_length=200, default="", blank=True)  # "" for ticks
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    not_before = models.DateTimeField()
    enqueued_at = models.DateTimeField()
    tick_id = models.BigIntegerField(null=True)  # scheduler.Tick; null: a call
    trigger = models.CharField(max_length=10)  # slot | start | operator | call
    slot = models.DateTimeField(null=True)

    # Rules of the row as they were at enqueue.
    time_limit_s = models.IntegerField(default=3600)
    abandon = models.CharField(max_length=8, choices=Abandon, default=Abandon.REQUEUE)
    retry_attempts = models.IntegerField(default=0)  # retries after the first attempt
    retry_base_s = models.IntegerField(default=60)
    retry_cap_s = models.IntegerField(default=3600)

    # The attempt. A fresh claim_id per claim: every write of the attempt matches it,
    # so a worker that lost its claim cannot close the item under its successor.
    claim_id = models.UUIDField(null=True)
    node_id = models.UUIDField(null=True)
    node = models.CharField(max_length=200, default="", blank=True)  # host, pid
    claimed_at = models.DateTimeField(null=True)
    renewed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    attempts = models.IntegerField(default=0)  # starts, the present one included
    failures = models.IntegerField(default=0)  # attempts that failed since enqueue
    recoveries = models.IntegerField(default=0)  # > 0: a suspect, runs alone
    rerun = models.BooleanField(default=False)  # run once more after this attempt
    progress = models.JSONField(null=True)
    last_error = models.TextField(default="", blank=True)
    held_reason = models.TextField(default="", blank=True)

    objects = WorkItemQuerySet.as_manager()

    class Meta:
        permissions = [
            ("cancel_item", "Can cancel items"),
            ("retry_item", "Can let held items run again"),
            ("drop_item", "Can drop held items"),
            ("bulk_items", "Can act on all items that match at once"),
        ]
        constraints = [
            # A slow run is never doubled by the next tick. The database refuses
            # the second row, so no caller has to look before it inserts.
            models.UniqueConstraint(
                fields=["tenant", "handler", "dedup_key"],
                name="workitem_one_live_per_tenant_handler_and_key",
            ),
        ]
        indexes = [
            # The claim walks this from its low-water mark.
            models.Index(
                fields=["handler", "not_before", "id"],
                name="workitem_pending",
                condition=models.Q(status="pending"),
            ),
            # What was held by a process that died: looked for alone, and rare.
            models.Index(
                fields=["not_before", "id"],
                name="workitem_suspect",
                condition=models.Q(status="pending", recoveries__gt=0),
            ),
            # The overview counts what is held, among any number that waits.
            models.Index(
                fields=["enqueued_at", "id"],
                name="workitem_held",
                condition=models.Q(status="held"),
            ),
            # Renewing and reclaiming look at what is held, never at what waits.
            models.Index(
                fields=["node_id", "renewed_at"],
                name="workitem_executing",
                condition=models.Q(status="executing"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.handler} for tenant {self.tenant_slug}"
