"""Channels with their test, notifications, and a reader's own messages."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audit import clock, ledger, page, words
from audit.secret import mask
from audit.templatetags import millrace
from scheduler.handlers.notifications import forms, views
from scheduler.handlers.notifications.models import (
    MAX_BROKEN,
    Channel,
    Notification,
    WebNotification,
)
from scheduler.handlers.notifications.send_test import send_test
from workqueue import access
from workqueue.own import OwnTenants

COUNT_UP_TO = 10_000  # rows; "10,000+" beyond
VIEW, TEST = "notifications.view_channel", "notifications.test_channel"
LOGGED = ("name", "kind", "is_enabled", "config")


class PageAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A model whose pages are our own: nothing is added, changed or deleted by form."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Code makes them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only by the verbs of their pages."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Archival does that."""
        return False


@admin.register(Notification)
class NotificationAdmin(PageAdmin):
    """The list, a page each, Retry and Suppress."""

    def get_urls(self) -> list[URLPattern]:
        """Our own pages under the names that the admin's links use."""
        name, inside = "notifications_notification", self.admin_site.admin_view
        return [
            path("", inside(views.notifications), name=f"{name}_changelist"),
            path("act/", inside(views.act), name=f"{name}_act"),
            path("<int:pk>/", inside(views.notification), name=f"{name}_change"),
        ]


@admin.register(WebNotification)
class WebNotificationAdmin(PageAdmin):
    """A reader's own messages. Everybody who may enter the admin may read his own."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The views show nothing but the reader's own."""
        return True

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As above."""
        return True

    def get_urls(self) -> list[URLPattern]:
        """The list, and the verb behind its buttons."""
        name, inside = "notifications_webnotification", self.admin_site.admin_view
        return [
            path("", inside(views.own), name=f"{name}_changelist"),
            path("read/", inside(views.mark_read), name=f"{name}_read"),
        ]


@admin.register(Channel)
class ChannelAdmin(OwnTenants):
    """A tenant's channels: state in a sentence, the fields of its kind, Send test."""

    empty_says = "A channel is how a tenant is told something: by e-mail, or by a message in this admin."  # admin/change_list.html

    list_display = ("name", "kind", "of_tenant", "state", "failures", "last_sent")
    list_filter = ("kind", "is_enabled")
    list_select_related = ("tenant",)
    list_per_page = 50
    search_fields = ("name", "tenant__slug")
    actions = None
    change_form_template = "notifications/channel.html"
    readonly_fields = (
        "of_tenant",
        "kind",
        "state",
        "failures",
        "waiting",
        "last_error_shown",
        "last_sent",
        "stored",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Channel]:
        """With their tenants, which every row names."""
        rows: QuerySet[Channel] = super().get_queryset(request)
        return rows.select_related("tenant")

    def get_form(
        self,
        request: HttpRequest,
        obj: Channel | None = None,
        change: bool = False,
        **kwargs: Any,
    ) -> Any:
        """First name and kind, then the fields of the kind."""
        form = forms.form_for(obj.kind) if obj else forms.NewChannelForm
        return super().get_form(request, obj, change, form=form, **kwargs)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Channel | None = None
    ) -> tuple[str, ...]:
        """Tenant and kind are for ever; the rest is what the channel reports."""
        return self.readonly_fields if obj else ()

    def get_fieldsets(self, request: HttpRequest, obj: Channel | None = None) -> Any:
        """What it is, how it is reached, how it is doing."""
        if obj is None:
            return [(None, {"fields": forms.NewChannelForm.Meta.fields})]
        secrets = ["new_secret", "stored", "forget_secret"]
        if not self.has_change_permission(request, obj):
            return [
                (
                    None,
                    {"fields": ["name", "of_tenant", "kind", "is_enabled", "stored"]},
                ),
                self._state(),
            ]
        reached = [
            *forms.config_fields(obj.kind),
            *(secrets if obj.kind != Channel.Kind.WEB else []),
        ]
        main = (None, {"fields": ["name", "of_tenant", "kind", "is_enabled"]})
        return [
            main,
            *([("How it is reached", {"fields": reached})] if reached else []),
            self._state(),
        ]

    def _state(self) -> tuple[str, dict[str, Any]]:
        return (
            "How it is doing",
            {
                "fields": [
                    "state",
                    "failures",
                    "waiting",
                    "last_error_shown",
                    "last_sent",
                ]
            },
        )

    def save_model(
        self,
        request: HttpRequest,
        obj: Channel,
        form: "ModelForm[Channel]",
        change: bool,
    ) -> None:
        """Only what the form is about: the rest belongs to the runs. With who and what."""
        old = None
        if isinstance(form, forms.ChannelForm):
            old = _logged(Channel.objects.get(pk=obj.pk))
            columns = form.apply()
            obj.save(update_fields=columns)
            secret = (
                {"sign_in": "replaced" if obj.secret else "removed"}
                if "secret" in columns
                else {}
            )
        else:
            obj.save()
            secret = {}
        ledger.change(
            who=request.user.get_username(),
            origin="admin",
            subject=f"channel:{obj.name}",
            verb="changed" if change else "created",
            old=old,
            new={**_logged(obj), **secret},
            tenant_id=obj.tenant_id,
        )

    def response_add(
        self, request: HttpRequest, obj: Channel, post_url_continue: str | None = None
    ) -> HttpResponse:
        """On to the fields of its kind."""
        messages.success(
            request,
            f"Channel “{obj.name}” is made. Say how it is reached, then send a test.",
        )
        return redirect("admin:notifications_channel_change", obj.pk)

    def has_delete_permission(
        self, request: HttpRequest, obj: Channel | None = None
    ) -> bool:
        """Never with its notifications: they are what was said to whom. Disable it instead."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or not obj.notifications.exists())

    def delete_model(self, request: HttpRequest, obj: Channel) -> None:
        """With who did it."""
        ledger.change(
            who=request.user.get_username(),
            origin="admin",
            subject=f"channel:{obj.name}",
            verb="removed",
            old=_logged(obj),
            tenant_id=obj.tenant_id,
        )
        super().delete_model(request, obj)

    def get_urls(self) -> list[Any]:
        """Send test beside the stock pages."""
        test = path(
            "<int:pk>/test/",
            self.admin_site.admin_view(
                page.needs(VIEW, TEST, methods=page.ASKS)(self.test)
            ),
            name="notifications_channel_test",
        )
        return [test, *super().get_urls()]

    def test(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for a recipient, send, say what the other side answered."""
        channel = get_object_or_404(self.get_queryset(request), pk=pk)
        access.require(request, TEST, [channel.tenant_id])
        user = request.user
        suggested = (
            user.get_username()
            if channel.kind == Channel.Kind.WEB
            else getattr(user, "email", "")
        )
        recipient = request.POST.get("recipient", "").strip()
        answer = None
        if request.method == "POST" and recipient:
            answer = send_test(
                channel,
                recipient=recipient[:320].replace("\x00", ""),
                who=user.get_username(),
            )
        return page.render(
            request,
            "notifications/test.html",
            title=f"Test of {channel.name}",
            lead="One message, sent now, also while the channel is disabled or paused.",
            group=views.GROUP,
            crumbs=(
                ("Channels", reverse("admin:notifications_channel_changelist")),
                (
                    channel.name,
                    reverse("admin:notifications_channel_change", args=[channel.pk]),
                ),
            ),
            channel=channel,
            recipient=recipient or suggested,
            answer=answer,
            missing=request.method == "POST" and not recipient,
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Whether the page offers the test."""
        context["may_test"] = context["original"] is not None and access.may(
            request, TEST, context["original"].tenant_id
        )
        context["group"] = views.GROUP
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="Tenant", ordering="tenant__slug")
    def of_tenant(self, obj: Channel) -> str:
        """The slug."""
        return words.shown(obj.tenant.slug)

    @admin.display(description="State")
    def state(self, obj: Channel) -> SafeString:
        """A word, and why and until when."""
        if not obj.is_enabled:
            why = words.shown(obj.disabled_reason) or "by an operator"
            return format_html(
                "{} {}", millrace.status("stopped", "Disabled"), f"({why})"
            )
        now = clock.now()
        if obj.paused_until and obj.paused_until > now:
            until = millrace.when({"now": now}, obj.paused_until)
            return format_html("{} ends {}", millrace.status("paused", "Paused"), until)
        return millrace.status("running", "Enabled")

    @admin.display(description="Failures in a row", ordering="consecutive_failures")
    def failures(self, obj: Channel) -> str:
        """Of the channel itself; that many disable it."""
        return f"{obj.consecutive_failures} of {MAX_BROKEN}"

    @admin.display(description="Waiting")
    def waiting(self, obj: Channel) -> str:
        """How many notifications are not sent yet."""
        live = obj.notifications.exclude(next_attempt_at=None)[
            : COUNT_UP_TO + 1
        ].count()
        return f"{COUNT_UP_TO:,}+" if live > COUNT_UP_TO else words.number(live)

    @admin.display(description="Last error")
    def last_error_shown(self, obj: Channel) -> SafeString | str:
        """Of the channel itself; a message's own stands with the message."""
        if not obj.last_error:
            return words.UNKNOWN
        return format_html("<code>{}</code>", words.shown(obj.last_error, limit=600))

    @admin.display(description="Last sent", ordering="last_sent_at")
    def last_sent(self, obj: Channel) -> str:
        """When a message last went through."""
        return millrace.when({"now": clock.now()}, obj.last_sent_at)

    @admin.display(description="Stored password")
    def stored(self, obj: Channel) -> str:
        """Never the password."""
        endpoint = obj.endpoint()
        if endpoint.fault:
            return endpoint.fault
        return mask(endpoint.secret) if endpoint.secret else words.UNKNOWN


def _logged(channel: Channel) -> dict[str, Any]:
    return {name: getattr(channel, name) for name in LOGGED}
