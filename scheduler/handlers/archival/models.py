"""Archival: what is kept how long, and the files that hold what was not."""

from datetime import datetime

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

KEEP_DAYS = (1, 36_500)  # a century is for ever


class ArchivalPolicyQuerySet(models.QuerySet["ArchivalPolicy"]):
    """Questions about policies."""

    def defaults(self) -> "ArchivalPolicyQuerySet":
        """Those for every tenant that has none of its own."""
        return self.filter(tenant=None)

    def enabled(self) -> "ArchivalPolicyQuerySet":
        """Those that are applied."""
        return self.filter(is_enabled=True)


class ArchivalPolicy(models.Model):
    """How long one type of record is kept, for one tenant or for all without their own."""

    class Action(models.TextChoices):
        """What becomes of rows past their time."""

        # Written to a file that is read back, then deleted.
        ARCHIVE = "archive", "Archive"
        # Deleted.
        DELETE = "delete", "Delete"

    tenant = models.ForeignKey(
        "workqueue.Tenant",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="archival_policies",
        help_text="Empty: the default, for every tenant that has no policy of its own.",
    )
    record_type = models.CharField(max_length=32)
    keep_days = models.PositiveIntegerField(
        validators=[MinValueValidator(KEEP_DAYS[0]), MaxValueValidator(KEEP_DAYS[1])],
        help_text="Days. Rows that ended before that many local midnights ago leave the table.",
    )
    action = models.CharField(max_length=8, choices=Action, default=Action.ARCHIVE)
    archive_keep_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(KEEP_DAYS[0]), MaxValueValidator(KEEP_DAYS[1])],
        help_text="Days that a file is kept after it was written. Empty: for ever.",
    )
    is_enabled = models.BooleanField("enabled", default=True)

    objects = ArchivalPolicyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "archival policies"
        ordering = ["record_type", "tenant"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "record_type"],
                name="archivalpolicy_one_per_tenant_and_type",
                violation_error_message="This tenant has a policy for this type of record.",
            ),
            # NULLs are distinct in the one above, on both databases.
            models.UniqueConstraint(
                fields=["record_type"],
                name="archivalpolicy_one_default_per_type",
                condition=models.Q(tenant=None),
                violation_error_message="There is a default for this type of record.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.record_type}, {self.tenant or 'default'}: {self.keep_days} days"


class ArchiveFileQuerySet(models.QuerySet["ArchiveFile"]):
    """Questions about files."""

    def present(self) -> "ArchiveFileQuerySet":
        """Those not yet removed by their policy."""
        return self.filter(deleted_at=None)

    def restored(self) -> "ArchiveFileQuerySet":
        """Those whose rows were put back: what the table does not hold any more, another file does."""
        return self.exclude(restored_at=None)


class ArchiveFile(models.Model):
    """A file, registered in the transaction that deleted its rows.

    Plain values instead of a foreign key: files outlive their tenant.
    """

    tenant_id = models.BigIntegerField()
    tenant = models.CharField(max_length=64)  # slug at the time
    record_type = models.CharField(max_length=32)
    path = models.CharField(max_length=300, unique=True)  # below ARCHIVE_ROOT
    first_id = models.CharField(max_length=36)  # in the order (time, id)
    last_id = models.CharField(max_length=36)
    min_at = models.DateTimeField()
    max_at = models.DateTimeField()
    rows = models.PositiveIntegerField()
    bytes = models.BigIntegerField()  # of the file
    sha256_raw = models.CharField(max_length=64)  # of the lines
    sha256_file = models.CharField(max_length=64)  # of the file
    created_at = models.DateTimeField()
    verified_at = models.DateTimeField(null=True)  # last found equal to its digests
    deleted_at = models.DateTimeField(null=True)  # removed by its policy
    restored_at = models.DateTimeField(null=True)  # its rows were put back

    objects = ArchiveFileQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        permissions = [
            ("verify_archivefile", "Can verify an archive file"),
            ("download_archivefile", "Can download an archive file"),
            ("restore_archivefile", "Can restore an archive file into its table"),
        ]
        constraints = [
            # Two attempts on the same rows: the second is refused, with its deletion.
            # Rows that were put back are archived again.
            models.UniqueConstraint(
                fields=["tenant_id", "record_type", "first_id"],
                condition=models.Q(restored_at=None),
                name="archivefile_one_per_tenant_type_and_first_row",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant_id", "record_type", "created_at"],
                name="archivefile_present",
                condition=models.Q(deleted_at=None),
            ),
        ]

    def __str__(self) -> str:
        return self.path

    def mark_verified(self, *, at: datetime) -> bool:
        """Remember that the file was found whole. False: it has been removed meanwhile."""
        return (
            ArchiveFile.objects.present().filter(pk=self.pk).update(verified_at=at) == 1
        )

    def mark_restored(self, *, at: datetime) -> None:
        """Remember that its rows are in their table again."""
        ArchiveFile.objects.filter(pk=self.pk).update(restored_at=at)

    def mark_deleted(self, *, at: datetime) -> bool:
        """Remember that the file was removed. False: somebody else did."""
        return (
            ArchiveFile.objects.present().filter(pk=self.pk).update(deleted_at=at) == 1
        )
