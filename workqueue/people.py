"""people: users and groups in the admin, and who manages whom.

The platform's administrators manage everybody; a tenant's administrators those who
belong to their tenants and nowhere else. Nobody gives what he does not have: a group is
offered only to those who hold all of its permissions, and whoever holds more than the
reader is not his to change. Superusers, single permissions and the groups themselves
are for superusers alone.
"""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import ForeignKey, Prefetch, Q, QuerySet
from django.forms.models import BaseInlineFormSet
from django.http import Http404, HttpRequest, HttpResponse

from audit import clock, page, words
from audit.admin import RecordedAdmin
from audit.templatetags import millrace
from workqueue import access
from workqueue.models import Membership, Tenant

PERSONAL = ("first_name", "last_name", "email")
RIGHTS = ("is_active", "is_staff", "groups")
FOR_SUPERUSERS = ("is_superuser", "user_permissions")
DATES = ("signed_in", "joined")  # told as on every page


class Boxes:
    """Many to choose from as boxes: the stock double list names its parts to nobody."""

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest | None, **kwargs: Any
    ) -> Any:
        """A box each."""
        kwargs["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]


class Places(BaseInlineFormSet):  # type: ignore[type-arg]
    """Where somebody belongs. Who is in none of his tenants would be out of their sight."""

    def clean(self) -> None:
        """At least one place, unless the reader sees everybody anyway."""
        super().clean()
        left = [
            form
            for form in self.forms
            if form.is_valid()
            and form.cleaned_data.get("tenant")
            and not form.cleaned_data.get("DELETE")
        ]
        if self.validate_min and not left and not any(self.errors):
            raise forms.ValidationError(
                "Choose at least one tenant, and the role there."
            )


class PlaceInline(admin.StackedInline):  # type: ignore[type-arg]
    """The tenants that somebody belongs to, of those that the reader administers."""

    model = Membership
    formset = Places
    extra = 0
    fields = (("tenant", "role"),)
    verbose_name = "place"
    verbose_name_plural = "Belongs to"

    def get_formset(
        self, request: HttpRequest, obj: User | None = None, **kwargs: Any
    ) -> Any:
        """A tenant's administrators say where; the platform's may leave it open."""
        one = access.administered(request) is not None
        kwargs |= {"min_num": int(one), "validate_min": one}
        return super().get_formset(request, obj, **kwargs)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        """Nobody learns where else somebody belongs."""
        scope, rows = page.tenants(request), super().get_queryset(request)
        return rows if scope is None else rows.filter(tenant_id__in=scope)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Likewise."""
        return super().formfield_for_foreignkey(
            db_field, request, **{**kwargs, **known(db_field, request)}
        )


class UserAdmin(Boxes, RecordedAdmin, StockUserAdmin):  # type: ignore[type-arg]
    """People, what they may do, and where."""

    list_display = (
        "username",
        "email",
        "roles",
        "places",
        "is_active",
        "is_superuser",
        "signed_in",
    )
    list_per_page = 50
    show_full_result_count = False
    readonly_fields = DATES
    inlines = (PlaceInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Those who belong to a tenant that the reader administers."""
        rows: QuerySet[User] = super().get_queryset(request)
        mine = access.administered(request)
        if mine is not None and page.tenants(request) is not None:
            rows = rows.filter(
                pk__in=Membership.objects.filter(tenant__in=mine).values("user_id")
            )
        shown = Membership.objects.select_related("tenant").order_by("tenant__slug")
        if (scope := page.tenants(request)) is not None:
            shown = shown.filter(tenant_id__in=scope)
        return rows.prefetch_related(
            "groups", Prefetch("memberships", shown, to_attr="shown_places")
        )

    def get_list_filter(self, request: HttpRequest) -> Any:
        """The names of all groups are the platform's."""
        names = super().get_list_filter(request)
        if page.tenants(request) is None:
            return names
        return [name for name in names if name != "groups"]

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """What is for superusers alone is not shown to others."""
        more = FOR_SUPERUSERS if request.user.is_superuser else ()
        if obj is None:
            secret = ("username", "usable_password", "password1", "password2")
            names: tuple[str, ...] = (*secret, "email")
            return [(None, {"fields": names}), ("What", {"fields": RIGHTS})]
        return [
            (None, {"fields": ("username", "password")}),
            ("Person", {"fields": PERSONAL}),
            ("What", {"fields": (*RIGHTS, *more)}),
            ("When", {"fields": DATES}),
        ]

    def get_changeform_initial_data(self, request: HttpRequest) -> Any:
        """Whoever is made here is to enter the admin."""
        return {"is_staff": True, **super().get_changeform_initial_data(request)}

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest | None, **kwargs: Any
    ) -> Any:
        """Only groups that give no more than the reader has himself."""
        if db_field.name == "groups" and request is not None:
            kwargs["queryset"] = groups_within(request)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Where there is anybody to see."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The platform's staff, and the administrators of tenants."""
        return _manages_some(request, viewing=True) and super().has_view_permission(
            request, obj
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Those with a tenant to put somebody into."""
        return _manages_some(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever sets somebody's password can become him."""
        allowed = super().has_change_permission(request, obj)
        return allowed and _manages_some(request) and _manages(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and _manages_some(request) and _manages(request, obj)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """That it was set is recorded; the password is not."""
        with transaction.atomic():
            before = self.get_object(request, id)
            response: HttpResponse = super().user_change_password(request, id, form_url)
            after = self.get_object(request, id)
            if before and after and before.password != after.password:
                self.record(
                    request,
                    after,
                    verb="changed",
                    old=None,
                    new={"sign_in": "password set"},
                )
        return response

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Without places: a user's history is read by all who manage him."""
        return super().construct_change_message(request, form, (), add)

    def save_formset(
        self, request: HttpRequest, form: Any, formset: Any, change: bool
    ) -> None:
        """Places, each with its own Change."""
        super().save_formset(request, form, formset, change)
        record_places(self, request, formset)

    def tenant_of(self, obj: Any) -> int | None:
        """The only tenant that somebody belongs to; the platform keeps the others' changes."""
        if not isinstance(obj, User):
            return super().tenant_of(obj)
        mine = set(obj.memberships.values_list("tenant_id", flat=True))
        return mine.pop() if len(mine) == 1 else None

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        raise Http404

    @admin.display(description="Last login", ordering="last_login")
    def signed_in(self, obj: User) -> str:
        """When, with the exact time under the pointer."""
        return millrace.when({"now": clock.now()}, obj.last_login)

    @admin.display(description="Date joined")
    def joined(self, obj: User) -> str:
        """Likewise."""
        return millrace.when({"now": clock.now()}, obj.date_joined)

    @admin.display(description="Groups")
    def roles(self, obj: User) -> str:
        """What somebody may do."""
        return ", ".join(each.name for each in obj.groups.all()) or words.UNKNOWN

    @admin.display(description="Belongs to")
    def places(self, obj: Any) -> str:
        """Where, and as what."""
        places = [f"{each.tenant.slug} ({each.role})" for each in obj.shown_places]
        return ", ".join(places) or words.UNKNOWN


class GroupAdmin(Boxes, RecordedAdmin, StockGroupAdmin):  # type: ignore[misc]
    """Sets of permissions: the platform's staff looks at them, superusers change them."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """For others there is no such page."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return page.tenants(request) is None and super().has_view_permission(
            request, obj
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever changes a group changes what its members may do."""
        return request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return request.user.is_superuser


def register() -> None:
    """Take the place of the stock lists of people, whichever app was loaded first."""
    for model, own in ((User, UserAdmin), (Group, GroupAdmin)):
        if admin.site.is_registered(model):
            admin.site.unregister(model)
        admin.site.register(model, own)


def known(db_field: ForeignKey[Any, Any], request: HttpRequest) -> dict[str, Any]:
    """What a field may point to: the reader's tenants, and people of them. Nobody else is named."""
    scope = access.administered(request)
    if scope is None:
        return {}
    if db_field.name == "tenant":
        return {"queryset": Tenant.objects.filter(pk__in=scope)}
    return {"queryset": User.objects.filter(memberships__tenant__in=scope).distinct()}


def groups_within(request: HttpRequest) -> QuerySet[Group]:
    """The groups whose permissions the reader holds himself."""
    if request.user.is_superuser:
        return Group.objects.all()
    beyond = Permission.objects.exclude(pk__in=_held_by(request.user).values("pk"))
    some = Group.objects.filter(permissions__isnull=False).distinct()
    return some.exclude(permissions__in=beyond)


def record_places(recorder: RecordedAdmin, request: HttpRequest, formset: Any) -> None:
    """A Change for each membership that a form made, changed or ended."""
    for each in formset.new_objects:
        new = {"role": each.role}
        recorder.record(request, each, verb="created", old=None, new=new)
    for each, names in formset.changed_objects:
        new = {name: str(getattr(each, name)) for name in names}
        recorder.record(request, each, verb="changed", old=None, new=new)
    for each in formset.deleted_objects:
        old = {"role": each.role}
        recorder.record(request, each, verb="deleted", old=old, new=None)


def _held_by(user: Any) -> QuerySet[Permission]:
    """What somebody holds, by himself or by his groups, whether he may sign in or not."""
    return Permission.objects.filter(Q(user=user.pk) | Q(group__user=user.pk))


def _manages_some(request: HttpRequest, *, viewing: bool = False) -> bool:
    """Whether there is a tenant whose staff is the reader's to manage."""
    everywhere = viewing and page.tenants(request) is None
    return everywhere or access.administered(request) != frozenset()


def _manages(request: HttpRequest, who: Any) -> bool:
    """Whether somebody belongs to the reader's tenants alone, and holds no more than he."""
    if who is None or request.user.is_superuser:
        return True
    if who.is_superuser:
        return False
    mine = access.administered(request)
    elsewhere = mine is not None and (
        Membership.objects.filter(user=who).exclude(tenant__in=mine).exists()
    )
    held = _held_by(request.user).values("pk")
    return not elsewhere and not _held_by(who).exclude(pk__in=held).exists()
