"""own: the base of every stock list and form whose rows belong to a tenant."""

from typing import Any

from django.contrib import admin
from django.db.models import ForeignKey, QuerySet
from django.http import Http404, HttpRequest, HttpResponse

from audit import page
from workqueue import access
from workqueue.models import Tenant


class OwnTenants(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows of the reader's tenants; written only by those who administer the tenant.

    Lists, forms, history and autocomplete all start from `get_queryset`, so that another
    tenant's row is 404 everywhere. Verbs of its own ask `access.may` with the row's tenant.
    """

    tenant_path = "tenant_id"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Everybody else's rows are not there."""
        scope, rows = page.tenants(request), super().get_queryset(request)
        return (
            rows if scope is None else rows.filter(**{f"{self.tenant_path}__in": scope})
        )

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Only tenants that the reader administers can be chosen."""
        mine = access.administered(request)
        if db_field.related_model is Tenant and mine is not None:
            kwargs["queryset"] = Tenant.objects.filter(pk__in=mine)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Django's permission, and a tenant to add to."""
        return (
            super().has_add_permission(request)
            and access.administered(request) != frozenset()
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Django's permission, and the role in the row's tenant."""
        return super().has_change_permission(request, obj) and self._administers(
            request, obj
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return super().has_delete_permission(request, obj) and self._administers(
            request, obj
        )

    def tenant_of(self, obj: Any) -> int | None:
        """The tenant that the row belongs to; None: the platform."""
        found: int | None = obj.tenant_id
        return found

    def _administers(self, request: HttpRequest, obj: Any) -> bool:
        if obj is None:
            return access.administered(request) != frozenset()
        return access.administers(request, self.tenant_of(obj))

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """404, as on every other page: the stock way leads back with the id in a message."""
        raise Http404
