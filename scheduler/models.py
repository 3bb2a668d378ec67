"""The scheduler's tables: the lease, the ticks, a row per timetable key."""

from django.db import models


class MasterLease(models.Model):
    """One row: who is master, for which term, until when."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    holder = models.UUIDField(null=True)  # Node.id; null: resigned
    # Host, pid of the holder, or of the last one.
    node = models.CharField(max_length=200, default="", blank=True)
    term = models.BigIntegerField(default=0)  # grows with every election
    since = models.DateTimeField(null=True)  # when this term began
    renewed_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(id=1), name="masterlease_is_one_row"
            ),
        ]

    def __str__(self) -> str:
        return f"term {self.term}: {self.node if self.holder else 'nobody'}"


class Schedule(models.Model):
    """What the ticker remembers of a timetable row, and what operators overrode."""

    key = models.CharField(max_length=64, primary_key=True)
    last_slot = models.DateTimeField(null=True)  # newest slot that was ticked
    since = models.DateTimeField()  # slots up to here are not missed
    effective = models.CharField(
        max_length=200, default="", blank=True
    )  # cadence and zone that `since` stands for
    problem = models.TextField(default="", blank=True)  # why it does not tick
    # The operator's override; "" = the timetable's cadence.
    cadence = models.CharField(max_length=100, default="", blank=True)
    cadence_who = models.CharField(max_length=150, default="", blank=True)
    cadence_at = models.DateTimeField(null=True)
    cadence_why = models.TextField(default="", blank=True)
    # Run now: the master ticks it at its next pass.
    run_requested_at = models.DateTimeField(null=True)
    run_requested_by = models.CharField(max_length=150, default="", blank=True)
    run_requested_why = models.TextField(default="", blank=True)

    class Meta:
        permissions = [
            ("run_schedule", "Can run handlers now"),
            ("change_cadence", "Can change the cadence of handlers"),
        ]

    def __str__(self) -> str:
        return self.key


class TickQuerySet(models.QuerySet["Tick"]):
    """Questions about ticks."""

    def idle(self) -> "TickQuerySet":
        """Those that called nobody and found nobody's item alive."""
        nothing = dict.fromkeys(
            ("enqueued", "reruns", "still_waiting", "still_running", "held", "blocked"),
            0,
        )
        return self.filter(**nothing)

    def newest(self, handler: str) -> "Tick | None":
        """The last tick of a row, whatever caused it. Three steps into an index."""
        found = (
            self.filter(handler=handler, trigger=one).order_by("-slot").first()
            for one in Tick.Trigger
        )
        return max(
            (tick for tick in found if tick), key=lambda tick: tick.at, default=None
        )


class Tick(models.Model):
    """One decision to enqueue, with everything that was not enqueued and why."""

    class Trigger(models.TextChoices):
        """What caused it."""

        # Its time had come.
        SLOT = "slot", "Slot"
        # A new master's bootstrap.
        START = "start", "Start"
        # An operator's run now.
        OPERATOR = "operator", "Operator"

    handler = models.CharField(max_length=64)
    trigger = models.CharField(max_length=10, choices=Trigger)
    slot = models.DateTimeField()
    at = models.DateTimeField()  # when it was written, database time
    term = models.BigIntegerField()
    lateness_ms = models.BigIntegerField(default=0)
    merged = models.IntegerField(default=1)  # idle ticks merged into this row
    enqueued = models.IntegerField(default=0)
    reruns = models.IntegerField(default=0)  # executing items asked to run again
    still_waiting = models.IntegerField(default=0)
    still_running = models.IntegerField(default=0)
    held = models.IntegerField(default=0)
    paused = models.IntegerField(default=0)
    blocked = models.IntegerField(default=0)  # tenants held or not reached
    # Ids of those held by somebody's transaction, tried last next time.
    blocked_tenants = models.JSONField(default=list)
    not_eligible = models.JSONField(default=dict)  # reason -> count
    missed = models.IntegerField(
        default=0
    )  # slots that this one stands for besides itself
    paused_slots = models.IntegerField(default=0)  # slots that fell into a pause
    who = models.CharField(max_length=150, default="", blank=True)  # operator, run now
    why = models.TextField(default="", blank=True)

    objects = TickQuerySet.as_manager()

    class Meta:
        constraints = [
            # Survives a master that froze and woke up.
            models.UniqueConstraint(
                fields=["handler", "trigger", "slot"],
                name="tick_one_per_handler_trigger_and_slot",
            ),
        ]
        indexes = [models.Index(fields=["at"], name="tick_by_time")]

    def __str__(self) -> str:
        return f"{self.handler} {self.trigger} {self.slot}"

    @property
    def not_reached(self) -> int:
        """Tenants left out since the database was too slow: the blocked whom nobody holds."""
        return self.blocked - len(self.blocked_tenants)


class BootstrapStep(models.Model):
    """A release's data step that has been applied."""

    name = models.CharField(max_length=100, primary_key=True)
    applied_at = models.DateTimeField()
    term = models.BigIntegerField()
    result = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return self.name
