"""Live settings: a row per version; the newest holds."""

from django.db import models


class SettingQuerySet(models.QuerySet["Setting"]):
    """Questions about settings."""

    def newest(self, name: str) -> "Setting | None":
        """The version in force, or None where all is at its default."""
        return self.filter(name=name).order_by("-version").first()


class Setting(models.Model):
    """One version of one setting. Never changed; restoring writes a new one."""

    name = models.CharField(max_length=64)  # "Worker Node Configuration"
    version = models.PositiveIntegerField()
    values = models.JSONField(default=dict)  # only what differs from the defaults
    at = models.DateTimeField()
    who = models.CharField(max_length=150)
    origin = models.CharField(max_length=8)
    why = models.TextField(default="", blank=True)
    restored_from = models.PositiveIntegerField(null=True)

    objects = SettingQuerySet.as_manager()

    class Meta:
        constraints = [
            # Two operators who save at once: the second is told, nothing is lost.
            models.UniqueConstraint(
                fields=["name", "version"], name="setting_one_row_per_version"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"
