"""The ledger's tables: append-only, plain values instead of foreign keys. Beside them what is
kept for their readers: counters, sums, and lists as somebody asked for them."""

from django.conf import settings
from django.db import models


class Run(models.Model):
    """One attempt: exactly one row per claim that was not handed back unstarted.

    On PostgreSQL the table is partitioned by month of `finished_at` and the
    database's key is (id, finished_at).
    """

    class Kind(models.TextChoices):
        """Which engine ran it."""

        # A work item of the queue.
        ITEM = "item", "Item"
        # A long job of the job worker.
        JOB = "job", "Job"

    class Outcome(models.TextChoices):
        """How the attempt ended. Never changes."""

        # Nothing failed.
        SUCCEEDED = "succeeded", "Succeeded"
        # Some records failed, at least one other was handled or skipped.
        PARTIAL = "partial", "Partial"
        # A set-up error, every record failed, or the time limit.
        FAILED = "failed", "Failed"
        # An operator ended it.
        CANCELLED = "cancelled", "Cancelled"
        # Its process stopped reporting; the item went back, was failed or is held.
        ABANDONED = "abandoned", "Abandoned"

    id = models.UUIDField(primary_key=True)  # = the claim_id of the attempt, UUIDv7
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.ITEM)
    item_id = models.BigIntegerField(null=True)  # attempts of one item share it
    tenant_id = models.BigIntegerField()
    tenant = models.CharField(max_length=64)  # slug at the time
    handler = models.CharField(max_length=64)  # timetable key or job type
    dedup_key = models.CharField(max_length=200, default="", blank=True)
    tick_id = models.BigIntegerField(null=True)  # null: not enqueued by a tick
    trigger = models.CharField(max_length=10)  # slot | start | operator | call
    slot = models.DateTimeField(null=True)  # the instant that it stands for
    enqueued_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)  # null: ended before any claim
    started_at = models.DateTimeField(null=True)  # null: never began
    finished_at = models.DateTimeField()
    node_id = models.UUIDField(null=True)
    node = models.CharField(max_length=200, default="", blank=True)  # host, pid
    attempt = models.IntegerField(default=0)  # 1 = first start
    recoveries = models.IntegerField(default=0)
    outcome = models.CharField(max_length=10, choices=Outcome)
    seen = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    skipped = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    summary = models.TextField(default="", blank=True)
    error = models.TextField(default="", blank=True)
    details = models.JSONField(null=True)
    # Short transcripts (<= 8 KB) stand here, one line of the form
    # "<ISO time> <LEVEL> <text>" each; longer ones are audit.Line rows.
    transcript = models.TextField(default="", blank=True)
    line_count = models.IntegerField(default=0)  # lines written, wherever they stand
    dropped_lines = models.IntegerField(default=0)  # lines that the cap left out
    finish_id = models.UUIDField()  # one per batch of finishes

    class Meta:
        permissions = [
            ("view_transcript", "Can read the transcripts of runs"),
            ("export", "Can download transcripts and lists"),
        ]
        indexes = [
            models.Index(fields=["finished_at", "id"], name="run_by_finish"),
            models.Index(fields=["tenant_id", "finished_at"], name="run_by_tenant"),
            models.Index(fields=["handler", "finished_at"], name="run_by_handler"),
            models.Index(
                fields=["outcome", "finished_at"],
                name="run_by_bad_outcome",
                condition=~models.Q(outcome="succeeded"),
            ),
            # All that did not succeed, in their order: the search for text in errors. Counted
            # without a look at the rows, which lie far apart.
            models.Index(
                fields=["finished_at", "id"],
                include=["outcome", "kind"],
                name="run_by_bad_finish",
                condition=~models.Q(outcome="succeeded"),
            ),
            # Job Logs: a handful among millions of runs of items.
            models.Index(
                fields=["finished_at", "id"],
                name="run_by_job_finish",
                condition=models.Q(kind="job"),
            ),
            # Attempts of one item: all but the only attempt of a run that succeeded.
            models.Index(
                fields=["item_id"],
                name="run_by_item",
                condition=models.Q(attempt__gt=1) | ~models.Q(outcome="succeeded"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.handler} for {self.tenant}: {self.outcome}"


class LateResult(models.Model):
    """What an attempt reported after its claim had been taken from it."""

    claim_id = models.UUIDField(
        db_index=True
    )  # of the attempt, taken from it meanwhile
    arrived_at = models.DateTimeField()
    node_id = models.UUIDField(null=True)
    node = models.CharField(max_length=200, default="", blank=True)
    tenant_id = models.BigIntegerField()
    tenant = models.CharField(max_length=64)
    handler = models.CharField(max_length=64)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField()
    outcome = models.CharField(max_length=10, choices=Run.Outcome)
    seen = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    skipped = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    summary = models.TextField(default="", blank=True)
    error = models.TextField(default="", blank=True)
    transcript = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return f"late {self.outcome} of {self.claim_id}"


class Line(models.Model):
    """One numbered line of a transcript. No foreign key: it precedes its Run.

    On PostgreSQL the table is partitioned by month of `at` and the database's key
    is (claim_id, seq, at).
    """

    pk = models.CompositePrimaryKey("claim_id", "seq")
    claim_id = models.UUIDField()
    seq = models.IntegerField()  # 1, 2, 3 ...; a gap is what the cap left out
    at = models.DateTimeField()
    level = models.SmallIntegerField()  # the numbers of `logging`
    text = models.TextField()

    def __str__(self) -> str:
        return f"{self.claim_id}#{self.seq}"


class Event(models.Model):
    """What is worth telling the world, committed with the change it tells of."""

    type = models.CharField(max_length=100)  # "status.changed"
    severity = models.SmallIntegerField(default=1)  # 0 debug .. 4 critical
    tenant_id = models.BigIntegerField()
    tenant = models.CharField(max_length=64)  # slug at the time
    subject = models.CharField(max_length=200)  # "component:42"
    data = models.JSONField(default=dict)
    occurred_at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [
            # Archival and subscriptions read one tenant's events in their order.
            models.Index(fields=["tenant_id", "occurred_at"], name="event_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.subject}"


class NodeEvent(models.Model):
    """What a process did: started, became master, resigned, was stopped."""

    class Type(models.TextChoices):
        """The kinds of entry in a node's execution log."""

        # The process registered itself.
        STARTED = "started", "Started"
        # It took the lease: a new term.
        ELECTED = "elected", "Became master"
        # It gave the lease back in order.
        RESIGNED = "resigned", "Resigned"
        # It found that its term was over.
        DEPOSED = "deposed", "Lost the lease"
        # It stopped claiming and finishes what it has.
        DRAINING = "draining", "Draining"
        # It ended in order.
        STOPPED = "stopped", "Stopped"
        # Others marked it stopped: its heartbeat was too old.
        SILENT = "silent", "Marked stopped"
        # Its beat came back after that.
        RETURNED = "returned", "Returned"
        # Bootstrap, a reduced limit and other things worth a line.
        NOTE = "note", "Note"

    node_id = models.UUIDField(db_index=True)
    node = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)  # server | worker | jobworker | web
    type = models.CharField(max_length=10, choices=Type)
    term = models.BigIntegerField(null=True)
    at = models.DateTimeField(db_index=True)
    text = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return f"{self.node}: {self.type}"


class Change(models.Model):
    """What an operator changed: who, when, old, new, why, from where."""

    class Origin(models.TextChoices):
        """Where the change came from."""

        # A form or an action of the admin.
        ADMIN = "admin", "Admin"
        # manage.py.
        COMMAND = "command", "Command"
        # /api/v1.
        API = "api", "API"
        # The engine itself (a pause that ended, a release's data step).
        ENGINE = "engine", "Engine"

    at = models.DateTimeField(db_index=True)
    who = models.CharField(max_length=150)
    origin = models.CharField(max_length=8, choices=Origin)
    subject = models.CharField(max_length=200)  # "setting:Worker Node Configuration"
    tenant_id = models.BigIntegerField(null=True)  # null: the platform's
    verb = models.CharField(max_length=30)  # changed | paused | resumed | retried ...
    old = models.JSONField(null=True)
    new = models.JSONField(null=True)
    why = models.TextField(default="", blank=True)

    class Meta:
        indexes = [
            # The history of one thing, on its own page.
            models.Index(fields=["subject", "at"], name="change_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.who} {self.verb} {self.subject}"


class Tally(models.Model):
    """Where the counters of runs stand: one row, no record. See audit.tally."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    until = models.DateTimeField()  # runs that ended later are not counted yet
    counts = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="tally_is_one_row"),
        ]

    def __str__(self) -> str:
        return f"runs that ended until {self.until}"


class SavedView(models.Model):
    """A list as its owner asked for it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    page = models.CharField(max_length=20)  # "runs" | "changes"
    name = models.CharField(max_length=60)
    query = models.TextField()  # the query string

    class Meta:
        constraints = [
            # Saving under a name that is taken replaces; two tabs cannot make two.
            models.UniqueConstraint(
                fields=["user", "page", "name"], name="savedview_one_per_name"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"


class RunSum(models.Model):
    """What the runs that ended in a stretch of time came to: for the Metrics page.

    `waits` and `rans` count runs by bucket: bucket b holds lengths from 10^(b/20) to
    10^((b+1)/20) milliseconds, so a percentile read from them is right to 6 %.
    """

    ALL = 0  # tenant_id of the sums over all tenants

    minutes = models.SmallIntegerField()  # how long; see audit.sum_up.LEVELS
    tenant_id = models.BigIntegerField()
    start = models.DateTimeField()
    handler = models.CharField(max_length=64)
    runs = models.IntegerField()
    failed = models.IntegerField()
    partial = models.IntegerField()
    abandoned = models.IntegerField()
    cancelled = models.IntegerField()
    waits = models.JSONField()  # {"57": 12}: 12 runs waited 0.71 to 0.79 s
    rans = models.JSONField()

    class Meta:
        default_permissions = ()  # nobody edits it; the page needs view_run
        constraints = [
            models.UniqueConstraint(
                fields=["minutes", "tenant_id", "start", "handler"],
                name="runsum_one_per_tenant_start_and_handler",
            ),
        ]
        # Old sums are deleted of all tenants at once.
        indexes = [models.Index(fields=["minutes", "start"], name="runsum_by_start")]

    def __str__(self) -> str:
        return f"{self.runs} of {self.handler} in {self.minutes} min"


class SummedUp(models.Model):
    """How far the sums go: one row. Who moves it writes the sums, in one transaction."""

    until = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"until {self.until}"
