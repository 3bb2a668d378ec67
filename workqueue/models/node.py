"""Processes: one row per start of a server, worker, job worker or web process."""

from django.db import models


class NodeQuerySet(models.QuerySet["Node"]):
    """Questions about processes."""

    def alive(self) -> "NodeQuerySet":
        """Those not marked stopped."""
        return self.exclude(status=Node.Status.STOPPED)


class Node(models.Model):
    """A process. Identified by a random value per start, never by its host."""

    class Kind(models.TextChoices):
        """What the process does."""

        # Takes part in the election; the master among them ticks.
        SERVER = "server", "Server"
        # Claims and runs work items.
        WORKER = "worker", "Worker"
        # Runs long jobs.
        JOBWORKER = "jobworker", "Job worker"
        # A gunicorn worker: counted in the connection budget, nothing else.
        WEB = "web", "Web"

    class Status(models.TextChoices):
        """Whether the process lives."""

        # Its beat is fresh.
        RUNNING = "running", "Running"
        # It claims nothing more and finishes what it has.
        DRAINING = "draining", "Draining"
        # It ended, or was silent too long. A beat that returns makes it run again.
        STOPPED = "stopped", "Stopped"

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=10, choices=Kind)
    host = models.CharField(max_length=200)
    pid = models.IntegerField()
    version = models.CharField(max_length=40)
    status = models.CharField(
        max_length=10, choices=Status, default=Status.RUNNING, db_index=True
    )
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    clock_skew_ms = models.IntegerField(default=0)  # its clock minus the database's
    # Limits asked, used and why; in flight; handlers known; settings version.
    report = models.JSONField(default=dict)

    objects = NodeQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.host}, {self.pid}"
