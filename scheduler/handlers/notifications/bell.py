"""bell: how many messages the reader has not read, for the header of every admin page."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from audit import page
from scheduler.handlers.notifications.models import WebNotification

MOST = 99  # "99+" beyond


def bell(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `bell`, counted only on pages that show it. "" where nothing is unread."""
    return {"bell": SimpleLazyObject(lambda: _unread(request))}


def _unread(request: HttpRequest) -> str:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return ""
    mine = WebNotification.objects.own(user.pk, tenants=page.tenants(request))
    found = mine.unread()[: MOST + 1].count()
    return f"{MOST}+" if found > MOST else str(found or "")
