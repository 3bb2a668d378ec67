"""admin: sign-in locks: which user names were refused too often, from where.

django-axes keeps them; deleting one lifts the lock. For the platform's staff alone: the
list holds the names and addresses of everybody who ever mistyped a password.
"""

from typing import Any

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from audit import clock, page, words
from audit.admin import ReadOnlyAdmin, RecordedAdmin
from audit.templatetags import millrace


@admin.register(AccessAttempt)
class SignInLockAdmin(ReadOnlyAdmin, RecordedAdmin):
    """Failures by user name and address, newest first; a right password removes its row."""

    empty_says = "A wrong password makes a row for its user name and address; too many of them lock both for a while."  # admin/change_list.html

    list_display = ("name", "ip_address", "failures_since_start", "last", "state")
    list_per_page = 50
    show_full_result_count = False
    search_fields = ("username", "ip_address")
    ordering = ("-attempt_time",)
    fields = (*list_display, "browser")
    readonly_fields = ("name", "last", "state", "browser")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Under the name that the menu has."""
        context = {"called": "Sign-in locks", **(extra_context or {})}
        return super().changelist_view(request, context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Likewise, and by the name that was locked."""
        context = {
            "title": "Sign-in lock",
            "subtitle": self._called(request, object_id),
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Likewise."""
        context = {
            "object_name": "sign-in lock",
            "named": self._called(request, object_id),
            **(extra_context or {}),
        }
        return super().delete_view(request, object_id, context)

    def _called(self, request: HttpRequest, object_id: str) -> str:
        found = self.get_object(request, object_id)
        return self.name(found) if found else ""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """For others there is no such page."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return page.tenants(request) is None and super().has_view_permission(
            request, obj
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever lifts a lock."""
        return page.tenants(request) is None and request.user.has_perm(
            "axes.delete_accessattempt"
        )

    def record(
        self, request: HttpRequest, obj: AccessAttempt, *, verb: str, old: Any, new: Any
    ) -> None:
        """By the name that was locked, which says more than a time."""
        old = {"user": obj.username, "address": obj.ip_address}
        super().record(request, obj, verb="lifted", old=old, new=new)

    @admin.display(description="User name", ordering="username")
    def name(self, obj: AccessAttempt) -> str:
        """As it was typed; there need not be such a user."""
        return words.shown(obj.username or "", limit=80) or words.UNKNOWN

    @admin.display(description="Last failure", ordering="attempt_time")
    def last(self, obj: AccessAttempt) -> str:
        """The lock ends a while after it."""
        return millrace.when({"now": clock.now()}, obj.attempt_time)

    @admin.display(description="State")
    def state(self, obj: AccessAttempt) -> SafeString:
        """Whether more tries are taken."""
        if obj.attempt_time + settings.AXES_COOLOFF_TIME < clock.now():
            return millrace.status("stopped", "Over")
        if obj.failures_since_start >= settings.AXES_FAILURE_LIMIT:
            return millrace.status("held", "Locked")
        left = settings.AXES_FAILURE_LIMIT - obj.failures_since_start
        return millrace.status("standby", f"{words.plural(left, 'try', 'tries')} left")

    @admin.display(description="Browser")
    def browser(self, obj: AccessAttempt) -> str:
        """As it calls itself."""
        return words.shown(obj.user_agent, limit=255)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        raise Http404
