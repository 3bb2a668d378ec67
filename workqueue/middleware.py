"""middleware: which tenants a request may see, worked out once."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from workqueue import tenancy


class TenantScope:
    """Sets request.tenants: a frozenset of ids, or None for all.

    Every list, page, search and export filters by it. Stands after
    AuthenticationMiddleware.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Take the next in line."""
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """One query for members of staff, none for superusers and strangers."""
        request.tenants = tenancy.scope(request.user)  # type: ignore[attr-defined]
        return self._get_response(request)
