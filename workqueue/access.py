"""access: what a reader of the admin may do, tenant by tenant.

Three things must agree before anything is changed: the tenant is the reader's, he holds
Django's permission (groups give it: Viewer, Operator, ...), and his role in that tenant
is more than a viewer's. Asked on the server for every row, whatever a page shows.

How a page uses it. `@page.needs("workqueue.view_pause")` on the view says who may open
it at all. Rows are taken from `scoped(queryset, page.tenants(request))`. Before a row is
changed: `access.require(request, "workqueue.pause_queue", [row.tenant_id])`, None for what
is the platform's. A button is shown if `access.may(...)` says yes to the same question.
Stock lists and forms of rows with a tenant inherit `workqueue.own.OwnTenants`.
"""

from collections.abc import Iterable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from audit import page
from workqueue.models import Membership

ADMINISTERING = frozenset([Membership.Role.ADMINISTRATOR.value])
OPERATING = ADMINISTERING | {Membership.Role.OPERATOR.value}


def sees(request: HttpRequest, tenant_id: int | None) -> bool:
    """Whether the row of a tenant is the reader's to see; None: the platform's."""
    scope = page.tenants(request)
    return scope is None or (tenant_id is not None and tenant_id in scope)


def may(request: HttpRequest, permission: str, tenant_id: int | None) -> bool:
    """Whether the reader may do it to this tenant's things; None: to the platform's."""
    if not sees(request, tenant_id) or not request.user.has_perm(permission):
        return False
    operated = operates(request)
    return operated is None or (tenant_id is not None and tenant_id in operated)


def require(
    request: HttpRequest, permission: str, tenant_ids: Iterable[int | None]
) -> None:
    """Refuse what the reader may not do."""
    if not all(may(request, permission, tenant_id) for tenant_id in tenant_ids):
        raise PermissionDenied


def may_somewhere(request: HttpRequest, permission: str) -> bool:
    """Whether there is a tenant, or the platform, that the reader may do it to."""
    return operates(request) != frozenset() and request.user.has_perm(permission)


def operates(request: HttpRequest) -> frozenset[int] | None:
    """The tenants in which the reader is more than a viewer; None: in all of them."""
    return _tenants(request, OPERATING)


def administered(request: HttpRequest) -> frozenset[int] | None:
    """The tenants that the reader administers; None: all of them."""
    return _tenants(request, ADMINISTERING)


def administers(request: HttpRequest, tenant_id: int | None) -> bool:
    """Whether the reader administers this tenant; None: the platform."""
    mine = administered(request)
    return mine is None or (tenant_id is not None and tenant_id in mine)


def _tenants(request: HttpRequest, roles: frozenset[str]) -> frozenset[int] | None:
    """The tenants in which the reader has one of the roles; one in the platform holds in all."""
    if request.user.is_active and request.user.is_superuser:
        return None
    mine = [each for each in _memberships(request) if each[2] in roles]
    return (
        None
        if any(is_platform for _, is_platform, _ in mine)
        else frozenset(id for id, _, _ in mine)
    )


def _memberships(request: HttpRequest) -> list[tuple[int, bool, str]]:
    """Tenant, whether it is the platform, role. One query a request: lists ask once per row."""
    known: list[tuple[int, bool, str]] | None = getattr(request, "_memberships", None)
    if known is None:
        rows = Membership.objects.filter(user_id=request.user.pk or 0)
        known = list(rows.values_list("tenant_id", "tenant__is_platform", "role"))
        request._memberships = known  # type: ignore[attr-defined]
    return known
