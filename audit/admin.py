"""admin: bases for the admin of every app: rows nobody edits, and edits that are recorded.

The ledger's own lists are pages (`audit.views`): they must not count, and no button
of theirs may change or delete.
"""

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from audit import ledger

SECRET = (
    "password",
    "password1",
    "password2",
)  # never written down, whoever changed it
PLAIN = (str, int, float, bool, type(None))


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that are shown and never added, changed or deleted, whatever a reader may do."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False


class RecordedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Every row added, changed or deleted is a Change, in the same transaction."""

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        """Save it, and write down what differs."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            names = [name for name in form.changed_data if name not in SECRET]
            old = (
                {name: plain(form.initial.get(name)) for name in names}
                if change
                else None
            )
            new = {name: plain(form.cleaned_data.get(name)) for name in names}
            secret = any(name in SECRET for name in form.changed_data)
            if new or secret or not change:
                self.record(
                    request,
                    obj,
                    verb="changed" if change else "created",
                    old=old,
                    new=new,
                )

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete it, and write down what it was."""
        with transaction.atomic():
            self.record(
                request,
                obj,
                verb="deleted",
                old={"id": plain(obj.pk), "name": str(obj)},
                new=None,
            )
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """One by one: each has its own line."""
        for obj in queryset:
            self.delete_model(request, obj)

    def record(
        self, request: HttpRequest, obj: Any, *, verb: str, old: Any, new: Any
    ) -> None:
        """Write the change down."""
        ledger.change(
            who=request.user.get_username(),
            origin="admin",
            subject=f"{self.opts.model_name}:{obj}",
            verb=verb,
            old=old,
            new=new,
            tenant_id=self.tenant_of(obj),
        )

    def tenant_of(self, obj: Any) -> int | None:
        """The tenant that the row belongs to; None: the platform."""
        return getattr(obj, "tenant_id", None)


def plain(value: Any) -> Any:
    """A form's value as JSON can hold it."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return str(value)
