"""Tenants, and who may see which."""

from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import models


def known_time_zone(name: str) -> None:
    """Refuse what the zone database does not know."""
    if name not in available_timezones():
        raise ValidationError(
            f"{name!r} is no time zone. Enter one like Europe/Vienna."
        )


class TenantQuerySet(models.QuerySet["Tenant"]):
    """Questions about tenants."""

    def active(self) -> "TenantQuerySet":
        """Those that work is enqueued for."""
        return self.filter(is_active=True)


class Tenant(models.Model):
    """A customer of the installation; the platform itself is one too."""

    slug = models.CharField(max_length=64, unique=True, validators=[validate_slug])
    name = models.CharField(max_length=200)
    is_platform = models.BooleanField(default=False, editable=False)
    is_active = models.BooleanField(default=True)
    licence_expires_at = models.DateTimeField(null=True, blank=True)  # null: never
    modules = models.JSONField(default=list, blank=True)  # ["compliance", ...]
    time_zone = models.CharField(
        max_length=64, default="UTC", validators=[known_time_zone]
    )

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        permissions = [("remove_tenant", "Can remove tenants with all they have")]
        constraints = [
            # Work of platform scope needs exactly one tenant to stand for it.
            models.UniqueConstraint(
                fields=["is_platform"],
                name="tenant_one_platform",
                condition=models.Q(is_platform=True),
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A user's place in a tenant. Members of the platform tenant see all tenants."""

    class Role(models.TextChoices):
        """What a member may do there."""

        # Looks.
        VIEWER = "viewer", "Viewer"
        # Retries, cancels, pauses.
        OPERATOR = "operator", "Operator"
        # All of the tenant's own records.
        ADMINISTRATOR = "administrator", "Administrator"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships"
    )
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=15, choices=Role, default=Role.VIEWER)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "tenant"], name="membership_one_per_user_and_tenant"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.tenant}"
