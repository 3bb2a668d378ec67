"""admin: tenants and memberships, on the admin's own lists and forms.

Both are limited to the reader's tenants in every query. A tenant is never deleted by
the stock button: `tenancy.remove` first records what it still has in the queue.
"""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from audit import clock, keyset, page
from audit.admin import RecordedAdmin
from audit.templatetags import millrace
from workqueue import access, people, tenancy
from workqueue.forms import TenantForm
from workqueue.models import Membership, Tenant, WorkItem
from workqueue.own import OwnTenants

LONGEST_REASON = 500  # characters
GRANTED = ("slug", "is_active", "licence_expires_at", "modules")  # by the platform

people.register()


class MembershipInline(admin.StackedInline):  # type: ignore[type-arg]
    """Who may see the tenant."""

    # The stock table has a head without a word, which screen readers stumble over.
    model = Membership
    extra = 0
    fields = (("user", "role"),)

    def get_autocomplete_fields(self, request: HttpRequest) -> Any:
        """Found by typing, where the reader may see all people anyway."""
        everybody = page.tenants(request) is None and request.user.has_perm(
            "auth.view_user"
        )
        return ("user",) if everybody else ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Only people whom the reader knows already."""
        return super().formfield_for_foreignkey(
            db_field, request, **{**kwargs, **people.known(db_field, request)}
        )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """As the list of memberships."""
        return super().has_view_permission(request, obj) and access.administers(
            request, _tenant_id(obj)
        )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Django's permission, and the role in the tenant."""
        return super().has_add_permission(request, obj) and access.administers(
            request, obj.pk if obj else None
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return super().has_change_permission(request, obj) and access.administers(
            request, _tenant_id(obj)
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return super().has_delete_permission(request, obj) and access.administers(
            request, _tenant_id(obj)
        )


@admin.register(Tenant)
class TenantAdmin(OwnTenants, RecordedAdmin):
    """Tenants: made, changed, and removed by one verb."""

    empty_says = "A tenant is whom work is done for. From its first slots on, each handler runs for it, once at a time."  # admin/change_list.html

    form = TenantForm
    tenant_path = "pk"
    list_display = (
        "slug",
        "name",
        "is_active",
        "is_platform",
        "licence",
        "time_zone",
    )
    list_filter = ("is_active",)
    search_fields = ("slug", "name")
    ordering = ("slug",)
    list_per_page = 50
    show_full_result_count = False
    actions = None
    inlines = (MembershipInline,)
    change_form_template = "admin/workqueue/tenant/change_form.html"

    @admin.display(description="Licence expires", ordering="licence_expires_at")
    def licence(self, obj: Tenant) -> str:
        """As every page tells times; without an end it never does."""
        return millrace.short({"now": clock.now()}, obj.licence_expires_at)

    def get_urls(self) -> list[URLPattern]:
        """The address of the removal, before the stock ones."""
        own = path(
            "<int:tenant_id>/remove/",
            self.admin_site.admin_view(self.remove_view),
            name="tenant_remove",
        )
        return [own, *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The platform's staff make tenants."""
        return super().has_add_permission(request) and access.administers(request, None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody by the stock button: what is in the queue must be recorded first."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """What the platform grants is not the tenant's to change."""
        return () if access.administers(request, None) else GRANTED

    def get_inlines(self, request: HttpRequest, obj: Tenant | None) -> Any:
        """Members come after the tenant is there."""
        return super().get_inlines(request, obj) if obj else ()

    def tenant_of(self, obj: Tenant) -> int | None:
        """Itself."""
        return obj.pk

    def save_formset(
        self, request: HttpRequest, form: Any, formset: Any, change: bool
    ) -> None:
        """Memberships, each with its own Change."""
        super().save_formset(request, form, formset, change)
        people.record_places(
            MembershipAdmin(Membership, self.admin_site), request, formset
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        """The form, with the button that removes it for those who may."""
        tenant = self.get_object(request, object_id)
        removable = (
            tenant is not None and not tenant.is_platform and self._may_remove(request)
        )
        return super().change_view(
            request,
            object_id,
            form_url,
            {**(extra_context or {}), "removable": removable},
        )

    def remove_view(self, request: HttpRequest, tenant_id: int) -> HttpResponse:
        """Ask, with what goes and what stays; then, by POST with a reason, remove it."""
        tenant = (
            self.get_queryset(request).filter(pk=tenant_id, is_platform=False).first()
        )
        if tenant is None:
            raise Http404
        if not self._may_remove(request):
            raise PermissionDenied
        why, problem = " ".join(request.POST.get("why", "").split()), ""
        if request.method == "POST":
            problem = tenancy.keeps(tenant) or _problem(
                why, typed=request.POST.get("slug", "").strip(), slug=tenant.slug
            )
            if not problem:
                slug = tenant.slug
                ended = tenancy.remove(
                    tenant, who=request.user.get_username(), origin="admin", why=why
                )
                messages.success(
                    request,
                    f"Tenant {slug} is removed; {ended:,} of its items were recorded as cancelled.",
                )
                return redirect("admin:workqueue_tenant_changelist")
        return page.render(
            request,
            "workqueue/remove_tenant.html",
            title=f"Remove tenant {tenant.slug}?",
            group="Tenants",
            crumbs=(
                ("Tenants", reverse("admin:workqueue_tenant_changelist")),
                (
                    tenant.slug,
                    reverse("admin:workqueue_tenant_change", args=[tenant.pk]),
                ),
            ),
            status=400 if problem else 200,
            quiet=True,
            tenant=tenant,
            items=keyset.shown(keyset.count(WorkItem.objects.filter(tenant=tenant))),
            members=tenant.memberships.count(),
            why=why,
            problem=problem or tenancy.keeps(tenant),
        )

    def _may_remove(self, request: HttpRequest) -> bool:
        return request.user.has_perm("workqueue.remove_tenant") and access.administers(
            request, None
        )


@admin.register(Membership)
class MembershipAdmin(OwnTenants, RecordedAdmin):
    """Who belongs to which tenant, in which role."""

    empty_says = "A membership lets a person see the rows of a tenant, and says in which role."  # admin/change_list.html

    list_display = ("user", "tenant", "role")
    list_filter = ("role",)
    list_select_related = ("user", "tenant")
    search_fields = ("user__username", "tenant__slug")
    ordering = ("tenant__slug", "user__username")
    list_per_page = 50
    show_full_result_count = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Those who administer: each row leads to its user, whom others may not see."""
        return super().has_view_permission(request, obj) and self._administers(
            request, obj
        )

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Only tenants that the reader administers, and people whom he knows already."""
        return super().formfield_for_foreignkey(
            db_field, request, **{**kwargs, **people.known(db_field, request)}
        )


def _tenant_id(obj: Any) -> int | None:
    """The tenant of an inline's parent, or of one of its rows."""
    return (
        obj.tenant_id
        if isinstance(obj, Membership)
        else obj.pk
        if obj is not None
        else None
    )


def _problem(why: str, *, typed: str, slug: str) -> str:
    if typed != slug:
        return f"Type {slug} to confirm: this cannot be undone."
    if not why:
        return "Say why: the next operator reads it."
    return (
        f"That is too long. Enter at most {LONGEST_REASON} characters."
        if len(why) > LONGEST_REASON
        else ""
    )
