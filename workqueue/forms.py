"""forms: a tenant as people edit it."""

from typing import Any
from zoneinfo import available_timezones

from django import forms

from workqueue import tenancy
from workqueue.models import Tenant


class TenantForm(forms.ModelForm):  # type: ignore[type-arg]
    """A tenant, with its modules one a line."""

    modules = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The modules it has a licence for, one a line: compliance, deployments, …",
    )
    time_zone = forms.CharField(
        max_length=64, help_text="Such as UTC or Europe/Berlin."
    )

    class Meta:
        model = Tenant
        fields = (
            "slug",
            "name",
            "is_active",
            "licence_expires_at",
            "modules",
            "time_zone",
        )
        help_texts = {
            "slug": "In addresses and in every record of what ran. Letters, digits, hyphens and underscores.",
            "is_active": "Nothing is enqueued for a tenant that is not active; what waits is still run.",
            "licence_expires_at": "Handlers that need a licence leave it out from then on. Empty: never.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Show the modules as lines."""
        super().__init__(*args, **kwargs)
        self.initial["modules"] = "\n".join(
            self.instance.modules if isinstance(self.instance.modules, list) else []
        )

    def clean_slug(self) -> str:
        """One that no other has, in whatever case."""
        slug = str(self.cleaned_data["slug"])
        if taken := tenancy.slug_taken(slug, but=self.instance.pk):
            raise forms.ValidationError(taken)
        return slug

    def clean_modules(self) -> list[str]:
        """The lines, each once."""
        return sorted(
            {
                line.strip()
                for line in self.cleaned_data["modules"].splitlines()
                if line.strip()
            }
        )

    def clean_time_zone(self) -> str:
        """A zone that exists."""
        zone = str(self.cleaned_data["time_zone"]).strip()
        if zone not in available_timezones():
            raise forms.ValidationError(
                f"“{zone}” is no time zone. Write one such as UTC or Europe/Berlin."
            )
        return zone
