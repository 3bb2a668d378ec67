"""Live settings: a row per version; the newest holds."""

import json
from typing import Any

from django.db import models

LONGEST_NUMBER = 100  # digits; Python refuses to read some thousands of them


def read_integer(digits: str) -> int:
    """A whole number; of an absurdly long one only that it is huge."""
    return int(digits[:LONGEST_NUMBER])


class PatientDecoder(json.JSONDecoder):
    """Reads whatever somebody wrote into the table by SQL.

    A text that cannot be held, for its depth say, is returned as it is.
    """

    def __init__(self, **options: Any) -> None:
        """As the stock decoder, but for long numbers."""
        super().__init__(**{**options, "parse_int": read_integer})

    def decode(self, s: str, *arguments: Any) -> Any:
        """The value, or the text."""
        try:
            return super().decode(s, *arguments)
        except (ValueError, RecursionError):
            return s


class SettingQuerySet(models.QuerySet["Setting"]):
    """Questions about settings."""

    def newest(self, name: str) -> "Setting | None":
        """The version in force, or None where all is at its default."""
        return self.filter(name=name).order_by("-version").first()


class Setting(models.Model):
    """One version of one setting. Never changed; restoring writes a new one."""

    name = models.CharField(max_length=64)  # "Worker Node Configuration"
    version = models.PositiveIntegerField()
    values = models.JSONField(
        default=dict, decoder=PatientDecoder
    )  # only what differs from the defaults
    at = models.DateTimeField()
    who = models.CharField(max_length=150)
    origin = models.CharField(max_length=8)
    why = models.TextField(default="", blank=True)
    restored_from = models.PositiveIntegerField(null=True)

    objects = SettingQuerySet.as_manager()

    class Meta:
        permissions = [("edit_caps", "Can change and restore live settings")]
        constraints = [
            # Two operators who save at once: the second is told, nothing is lost.
            models.UniqueConstraint(
                fields=["name", "version"], name="setting_one_row_per_version"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"
