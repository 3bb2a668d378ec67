"""Deployments and images: what jobs made, and the state that Terraform keeps of it."""

import json
from datetime import datetime
from typing import Any

from django.db import models

from audit import text
from audit.secret import EncryptedTextField, SecretsLater


class DeploymentQuerySet(models.QuerySet["Deployment"]):
    """Questions about deployments."""

    def expiring(self, *, before: datetime) -> "DeploymentQuerySet":
        """Active ones whose time is over by then; protected ones never are."""
        return self.filter(
            status=Deployment.Status.ACTIVE, protected=False, delete_after__lte=before
        )

    def under_way(self) -> "DeploymentQuerySet":
        """Those that a job makes, changes or takes away."""
        return self.filter(
            status__in=[Deployment.Status.PROVISIONING, Deployment.Status.DESTROYING]
        )


DeploymentManager = SecretsLater.from_queryset(DeploymentQuerySet)


class Deployment(models.Model):
    """Something that a tenant had made by a module: a cluster, a database."""

    class Kind(models.TextChoices):
        """What it is; also the folder of its modules."""

        CLUSTER = "cluster", "Cluster"
        DATABASE = "database", "Database"

    class Status(models.TextChoices):
        """Where it is."""

        # A job makes or changes it.
        PROVISIONING = "provisioning", "Provisioning"
        # It is as it was asked for.
        ACTIVE = "active", "Active"
        # A job stopped in the middle: parts of it may be there.
        FAILED = "failed", "Failed"
        # A job takes it away.
        DESTROYING = "destroying", "Destroying"
        # Nothing of it is left. The name may be used again.
        DESTROYED = "destroyed", "Destroyed"

    # No database constraint: removing a tenant leaves the record of what still runs.
    tenant = models.ForeignKey(
        "workqueue.Tenant", models.DO_NOTHING, db_constraint=False, db_index=False
    )
    tenant_slug = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, choices=Kind)
    name = models.CharField(max_length=64)
    module = models.CharField(max_length=64)
    variables = models.JSONField(default=dict, blank=True)  # given to the module
    # Those that we made up and nobody is to read: {"password": ...} as JSON.
    secret_variables = EncryptedTextField(default="", blank=True, masked=False)
    status = models.CharField(
        max_length=16, choices=Status, default=Status.PROVISIONING
    )
    resources = models.IntegerField(default=0)  # in the state, at the end of a job
    outputs = models.JSONField(default=dict, blank=True)  # without the sensitive ones
    # The sensitive ones: {"kubeconfig": ...} as JSON.
    secret_outputs = EncryptedTextField(default="", blank=True, masked=False)
    delete_after = models.DateTimeField(null=True, blank=True)  # null: never
    protected = models.BooleanField(default=False)  # never destroyed by the sweep
    # For which delete_after its owners were warned, a day and an hour ahead.
    warned_day_for = models.DateTimeField(null=True)
    warned_hour_for = models.DateTimeField(null=True)
    last_job = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()

    objects = DeploymentManager()

    class Meta:
        ordering = ["tenant_slug", "kind", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "kind", "name"],
                name="deployment_one_per_tenant_kind_and_name",
            )
        ]
        indexes = [
            # What the sweep looks for every ten minutes.
            models.Index(
                fields=["delete_after"],
                name="deployment_expiring",
                condition=models.Q(status="active", delete_after__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def is_over(self, now: datetime) -> bool:
        """Whether its time is."""
        return self.delete_after is not None and self.delete_after <= now

    def secrets(self) -> dict[str, Any]:
        """Its secret variables and outputs, masked in all that is stored, as long as the attempt is there.

        Raises UnreadableSecret.
        """
        found: dict[str, Any] = {}
        for part in (self.secret_variables, self.secret_outputs):
            found |= json.loads(part or "{}")
        mask(found)
        return found


class TerraformState(models.Model):
    """One version of a deployment's state, as Terraform posted it. The last 20 are kept."""

    deployment = models.ForeignKey(
        Deployment, models.CASCADE, related_name="states", db_index=False
    )
    serial = models.BigIntegerField()
    lineage = models.CharField(max_length=64, default="", blank=True)
    # A document that holds secrets, not a secret: its lines are words of every log.
    body = EncryptedTextField(masked=False)
    md5 = models.CharField(max_length=32)  # of the body, hexadecimal
    job = models.UUIDField()
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["deployment", "id"], name="state_newest")]

    def __str__(self) -> str:
        return f"state {self.serial} of {self.deployment}"


class TerraformLock(models.Model):
    """Who changes a deployment's state now. What is there is the lock."""

    deployment = models.OneToOneField(Deployment, models.CASCADE, related_name="lock")
    lock_id = models.CharField(max_length=64)  # Terraform's own
    info = models.JSONField(
        default=dict
    )  # as Terraform told it, shown to who comes second
    job = models.UUIDField()
    claim_id = models.UUIDField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"lock of {self.deployment} by job {self.job}"


class Image(models.Model):
    """An artifact of a build. A later build of the same version takes its place."""

    tenant = models.ForeignKey(
        "workqueue.Tenant", models.DO_NOTHING, db_constraint=False, db_index=False
    )
    tenant_slug = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    version = models.CharField(max_length=64)
    build = models.CharField(max_length=200)  # "golden.file.rootfs"
    provider = models.CharField(max_length=200)  # Packer's builder id: "packer.file"
    external_id = models.CharField(max_length=500, default="", blank=True)
    # [{"path", "size", "sha256"}], where the worker keeps them.
    files = models.JSONField(default=list, blank=True)
    sha256 = models.CharField(
        max_length=64, default="", blank=True
    )  # of the first file
    source_job = models.UUIDField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)

    class Meta:
        ordering = ["tenant_slug", "name", "-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name", "version", "build"],
                name="image_one_per_tenant_name_version_and_build",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.build})"


def mask(value: Any) -> None:
    """Mask every text in it, also of a value that has parts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            mask(part)
    elif isinstance(value, str):
        text.register_secret(value)
