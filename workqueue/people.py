"""people: users and groups in the admin. They are the platform's; tenants do not see them.

What could make somebody a superuser, or more than he was, is for superusers alone: the
stock forms would let anybody with change_user tick the box.
"""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from audit import page
from audit.admin import RecordedAdmin
from workqueue import access


class Boxes:
    """Many to choose from as boxes: the stock double list names its parts to nobody."""

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest | None, **kwargs: Any
    ) -> Any:
        """A box each."""
        kwargs["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]


class PlatformOnly(RecordedAdmin):
    """Rows of the platform: for others there is no such page, and no line in the menu."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """The platform's staff alone."""
        return page.tenants(request) is None and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return page.tenants(request) is None and super().has_view_permission(
            request, obj
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Likewise."""
        return (
            page.tenants(request) is None
            and access.administers(request, None)
            and super().has_add_permission(request)
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return (
            page.tenants(request) is None
            and access.administers(request, None)
            and super().has_change_permission(request, obj)
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return (
            page.tenants(request) is None
            and access.administers(request, None)
            and super().has_delete_permission(request, obj)
        )


class UserAdmin(Boxes, PlatformOnly, StockUserAdmin):  # type: ignore[type-arg]
    """People. Only a superuser makes, or touches, what could become one."""

    list_display = (
        "username",
        "email",
        "is_active",
        "is_staff",
        "is_superuser",
        "last_login",
    )
    list_per_page = 50
    show_full_result_count = False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Rights are given by superusers."""
        fields = tuple(super().get_readonly_fields(request, obj))
        return (
            fields
            if request.user.is_superuser
            else (*fields, "is_superuser", "groups", "user_permissions")
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever sets a superuser's password is one."""
        return super().has_change_permission(request, obj) and (
            request.user.is_superuser or not (obj and obj.is_superuser)
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return super().has_delete_permission(request, obj) and (
            request.user.is_superuser or not (obj and obj.is_superuser)
        )


class GroupAdmin(Boxes, PlatformOnly, StockGroupAdmin):  # type: ignore[misc]
    """Sets of permissions. They are given by superusers."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever changes a group changes what its members may do."""
        return request.user.is_superuser and super().has_change_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Likewise."""
        return request.user.is_superuser and super().has_add_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return request.user.is_superuser and super().has_delete_permission(request, obj)


def register() -> None:
    """Take the place of the stock lists of people, whichever app was loaded first."""
    for model, own in ((User, UserAdmin), (Group, GroupAdmin)):
        if admin.site.is_registered(model):
            admin.site.unregister(model)
        admin.site.register(model, own)
