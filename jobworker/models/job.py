"""Jobs: one long piece of work for one tenant. The row stays until archival."""

from uuid import uuid4

from django.db import models
from django.db.models import Q


class JobQuerySet(models.QuerySet["Job"]):
    """Questions about jobs."""

    def pending(self) -> "JobQuerySet":
        """Jobs that any worker that knows their type may claim."""
        return self.filter(status=Job.Status.PENDING)

    def running(self) -> "JobQuerySet":
        """Jobs that a process holds."""
        return self.filter(status=Job.Status.RUNNING)

    def unfinished(self) -> "JobQuerySet":
        """Both."""
        return self.filter(status__in=Job.UNFINISHED)


class Job(models.Model):
    """One long piece of work for one tenant. Starts at most once."""

    class Status(models.TextChoices):
        """Where a job is."""

        # Waiting for a worker that knows its type and has room in its tier.
        PENDING = "pending", "Pending"
        # Claimed; the node named in node_id holds it.
        RUNNING = "running", "Running"
        # It did all that it was to do.
        SUCCEEDED = "succeeded", "Succeeded"
        # It did not, or its worker abandoned it. Never requeued.
        FAILED = "failed", "Failed"
        # An operator ended it.
        CANCELLED = "cancelled", "Cancelled"

    class Tier(models.TextChoices):
        """What a job costs while it runs. The cap of each is a live setting."""

        # Works all the time: programs, much output.
        HEAVY = "heavy", "heavy"
        # Works now and then.
        MEDIUM = "medium", "mixed"
        # Mostly waits for somebody else's computer.
        LIGHT = "light", "poll-only"

    UNFINISHED = (Status.PENDING, Status.RUNNING)

    # Random, so that its first characters tell it from others: logs and people use them.
    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    # No database constraint: removing a tenant ends its jobs, the record stays.
    tenant = models.ForeignKey(
        "workqueue.Tenant", models.DO_NOTHING, db_constraint=False, db_index=False
    )
    tenant_slug = models.CharField(max_length=64)  # as it was at submit, for the ledger
    type = models.CharField(max_length=64)  # "packer_build"
    tier = models.CharField(max_length=6, choices=Tier)
    subject = models.CharField(max_length=200, default="", blank=True)  # "image golden"
    params = models.JSONField(default=dict)
    exclusive = models.CharField(max_length=64, default="", blank=True)  # group, or ""
    # What no second unfinished job may work on: "deployment:demo"; "": nothing.
    lock = models.CharField(max_length=200, default="", blank=True)
    time_limit_s = models.IntegerField()
    priority = models.SmallIntegerField(default=0)  # higher first, within a tenant
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    adopts = models.ForeignKey(
        "self", models.SET_NULL, null=True, related_name="adopted_by"
    )  # it follows what that job began outside, and starts nothing

    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    origin = models.CharField(max_length=8)  # admin | command | api | engine

    # A fresh value per claim; every write of the attempt matches it.
    claim_id = models.UUIDField(null=True)
    node_id = models.UUIDField(null=True)
    node = models.CharField(max_length=200, default="", blank=True)  # host, pid
    claimed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # The claimant lives; and the job itself gave a sign: a line, a phase, progress.
    heartbeat_at = models.DateTimeField(null=True)
    progress_at = models.DateTimeField(null=True)
    progress = models.SmallIntegerField(default=0)  # 0 to 100, never falls
    phase = models.CharField(max_length=200, default="", blank=True)
    phases = models.JSONField(default=list)  # [{"name", "at"}] in their order
    line_count = models.IntegerField(default=0)  # lines stored so far
    dropped_lines = models.IntegerField(default=0)  # lines that the cap left out
    output_lag_ms = models.IntegerField(
        null=True
    )  # written to stored, at the last look

    cancel_requested_at = models.DateTimeField(null=True)
    cancel_requested_by = models.CharField(max_length=150, default="", blank=True)

    # What it began outside: {"what": "apply of deployment demo", "host": ..., ...}.
    external_ref = models.JSONField(null=True)
    result = models.JSONField(null=True)
    summary = models.TextField(default="", blank=True)
    error_code = models.CharField(max_length=40, default="", blank=True)
    error = models.TextField(default="", blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        permissions = [
            ("submit_job", "Can submit jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("adopt_job", "Can adopt what a failed job began"),
        ]
        constraints = [
            # The backstop of the rule in the claim: two workers that look at once.
            models.UniqueConstraint(
                fields=["exclusive"],
                name="job_one_running_per_exclusive_group",
                condition=Q(status="running") & ~Q(exclusive=""),
            ),
            # A second job on one deployment is refused when it is submitted.
            models.UniqueConstraint(
                fields=["tenant", "lock"],
                name="job_one_unfinished_per_lock",
                condition=Q(status__in=["pending", "running"]) & ~Q(lock=""),
            ),
            models.CheckConstraint(
                name="job_running_has_a_claimant",
                condition=~Q(status="running")
                | Q(claim_id__isnull=False, node_id__isnull=False),
            ),
        ]
        indexes = [
            # What waits: few rows, whatever the table keeps.
            models.Index(
                fields=["tier", "tenant", "created_at"],
                name="job_pending",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["node_id"],
                name="job_running",
                condition=Q(status="running"),
            ),
            # Whose turn it is: the last claim of a tenant in a tier.
            models.Index(fields=["tenant", "tier", "claimed_at"], name="job_turns"),
            # The list of jobs, newest first, of all and of one tenant.
            models.Index(fields=["created_at", "id"], name="job_by_creation"),
            models.Index(fields=["tenant", "created_at"], name="job_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.subject}".strip()
