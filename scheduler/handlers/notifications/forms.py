"""forms: a channel's name and kind first, then the fields of its kind."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from django import forms
from django.forms.utils import pretty_name

from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import Channel

PREFIX = "config_"
# With a stored password these say whom it is sent to: who changes one enters it again.
GUARDED = ("host", "port", "security")


class NewChannelForm(forms.ModelForm):  # type: ignore[type-arg]
    """Which tenant, what kind; the kind's own fields come on the next page."""

    class Meta:
        model = Channel
        fields = ["tenant", "kind", "name"]


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg]
    """A channel of a kind. The kind's fields are added by `form_for`, named config_*."""

    # Not named as the column: the stored value must never be an initial one.
    new_secret = forms.CharField(
        label="Password",
        required=False,
        strip=False,
        max_length=1_000,
        validators=[border.CREDENTIAL],
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    forget_secret = forms.BooleanField(
        label="Forget the stored password", required=False
    )

    class Meta:
        model = Channel
        fields = ["name", "is_enabled"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Fill the kind's fields from the stored configuration."""
        super().__init__(*args, **kwargs)
        config = self.instance.endpoint().config
        for name in self._config_fields():
            self.initial.setdefault(name, config.get(name.removeprefix(PREFIX)))
        if "new_secret" in self.fields:
            stored = self.instance.has_secret()
            self.fields["new_secret"].help_text = (
                "One is stored. Empty: it stays." if stored else "None is stored."
            )

    def clean(self) -> dict[str, Any]:
        """Refuse to send a stored password to another server unseen."""
        cleaned = super().clean() or {}
        moved = [name for name in GUARDED if f"{PREFIX}{name}" in self.changed_data]
        entered = cleaned.get("new_secret") or cleaned.get("forget_secret")
        if moved and not entered and self.instance.has_secret():
            self.add_error(
                "new_secret",
                "The server changed. Enter the password again, or forget the stored one:"
                " it must not go to a server that nobody meant it for.",
            )
        return cleaned

    def apply(self) -> list[str]:
        """Put what was entered on the instance. Returns the columns to save."""
        columns = ["name", "is_enabled", "config"]
        self.instance.config = self.config()
        if self.cleaned_data.get("forget_secret"):
            self.instance.secret = ""
            columns.append("secret")
        elif secret := self.cleaned_data.get("new_secret"):
            self.instance.secret = secret
            columns.append("secret")
        if self.instance.is_enabled and "is_enabled" in self.changed_data:
            # Enabling says that the cause is gone: it starts with a clean sheet.
            self.instance.consecutive_failures = 0
            self.instance.disabled_reason = ""
            self.instance.paused_until = None
            columns += ["consecutive_failures", "disabled_reason", "paused_until"]
        return columns

    def config(self) -> dict[str, Any]:
        """The configuration as it is stored: only what was filled in."""
        entered = {
            name.removeprefix(PREFIX): self.cleaned_data.get(name)
            for name in self._config_fields()
        }
        return {
            name: value for name, value in entered.items() if value not in (None, "")
        }

    def _config_fields(self) -> list[str]:
        return [name for name in self.fields if name.startswith(PREFIX)]


def form_for(kind: str) -> type[ChannelForm]:
    """The form of a kind; of one that this release cannot speak, the common fields only."""
    return type("ChannelForm", (ChannelForm,), dict(config_fields(kind)))


def config_fields(kind: str) -> Mapping[str, forms.Field]:
    """The kind's own fields, by the names that they have in the form."""
    if kind not in border.MODULES:
        return {}
    fields = deepcopy(border.module(kind).ConfigForm.base_fields)
    for name, field in fields.items():
        field.label = field.label or pretty_name(name)  # not that of the prefixed name
    return {f"{PREFIX}{name}": field for name, field in fields.items()}
