"""Pauses: what must not be enqueued by slot nor claimed for a while."""

from django.db import models
from django.db.models import Q


class PauseQuerySet(models.QuerySet["Pause"]):
    """Questions about pauses."""

    def in_force(self) -> "PauseQuerySet":
        """Those not ended by an operator; whoever asks compares `until` himself."""
        return self.filter(ended_at=None)


class Pause(models.Model):
    """Nothing it names is enqueued by slot or claimed; what runs goes on."""

    class Scope(models.TextChoices):
        """What is paused."""

        # Every handler of every tenant.
        EVERYTHING = "everything", "Everything"
        # One handler, for every tenant.
        HANDLER = "handler", "Handler"
        # Everything of one tenant.
        TENANT = "tenant", "Tenant"
        # One type of long job.
        JOB_TYPE = "job_type", "Job type"

    scope = models.CharField(max_length=10, choices=Scope)
    handler = models.CharField(max_length=64, default="", blank=True)  # key or type
    tenant = models.ForeignKey(
        "workqueue.Tenant", models.CASCADE, null=True, blank=True, related_name="+"
    )
    reason = models.TextField()
    who = models.CharField(max_length=150)
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)  # null: until somebody ends it
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, default="", blank=True)

    objects = PauseQuerySet.as_manager()

    class Meta:
        permissions = [
            ("pause_queue", "Can pause handlers, tenants and everything"),
            ("resume_queue", "Can end pauses"),
        ]
        constraints = [
            # One pause of a thing at a time: ending it must end it. (Three rows, since
            # SQLite cannot call two NULLs equal.)
            models.UniqueConstraint(
                fields=["scope"],
                name="pause_one_of_everything",
                condition=Q(ended_at=None, scope="everything"),
            ),
            models.UniqueConstraint(
                fields=["scope", "handler"],
                name="pause_one_per_handler_or_job_type",
                condition=Q(ended_at=None, scope__in=["handler", "job_type"]),
            ),
            models.UniqueConstraint(
                fields=["tenant"],
                name="pause_one_per_tenant",
                condition=Q(ended_at=None, scope="tenant"),
            ),
            models.CheckConstraint(
                name="pause_names_what_its_scope_needs",
                condition=(
                    Q(scope="everything", handler="", tenant=None)
                    | (
                        Q(scope__in=["handler", "job_type"], tenant=None)
                        & ~Q(handler="")
                    )
                    | Q(scope="tenant", handler="", tenant__isnull=False)
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.handler or self.tenant or ''}".strip()
