"""checks: what the queue needs of its settings. Ids stay for ever."""

import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.utils.module_loading import import_string

from workqueue.connections import RESERVED
from workqueue.registry import Handler

KEEP_ALIVE = (timedelta(seconds=2), timedelta(seconds=600))
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
SCOPE = "workqueue.middleware.TenantScope"
_KEY = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*")


@register()
def check_timetable(**_: Any) -> list[CheckMessage]:
    """workqueue.E001 and E002: the timetable is there, and its keys are paths, each once."""
    path = settings.WORKQUEUE_HANDLERS
    try:
        table = tuple(import_string(path))
    except (ImportError, TypeError) as problem:
        return [
            Error(
                f"WORKQUEUE_HANDLERS = {path!r} is no timetable: {problem}",
                hint='Name a tuple of workqueue.registry.Handler, like "scheduler.timetable.TIMETABLE".',
                id="workqueue.E001",
            )
        ]
    keys = [row.key for row in table if isinstance(row, Handler)]
    bad = {key for key in keys if keys.count(key) > 1 or not _KEY.fullmatch(key)}
    return [
        Error(
            f"The timetable's key {key!r} stands twice or is no path of a module.",
            hint='Give each row its own key, like "webhooks.retry" for webhooks/retry.py.',
            id="workqueue.E002",
        )
        for key in sorted(bad)
    ]


@register()
def check_keep_alive(**_: Any) -> list[CheckMessage]:
    """workqueue.E003: beats that are neither a storm nor useless."""
    low, high = KEEP_ALIVE
    if low <= settings.KEEP_ALIVE <= high:
        return []
    return [
        Error(
            f"KEEP_ALIVE is {settings.KEEP_ALIVE.total_seconds():g} s.",
            hint="Set FALCON_SERVER_KEEP_ALIVE_SECONDS to a number from 2 to 600.",
            id="workqueue.E003",
        )
    ]


@register()
def check_middleware(**_: Any) -> list[CheckMessage]:
    """workqueue.E004: without its middleware no list is scoped by tenant."""
    names = list(settings.MIDDLEWARE)
    if SCOPE in names and AUTHENTICATION in names[: names.index(SCOPE)]:
        return []
    return [
        Error(
            f"{SCOPE} is missing from MIDDLEWARE, or stands before {AUTHENTICATION}.",
            hint=f'Add "{SCOPE}" after "{AUTHENTICATION}".',
            id="workqueue.E004",
        )
    ]


@register(Tags.database)
def check_pool(**_: Any) -> list[CheckMessage]:
    """workqueue.W001: a pool that is set so small that a worker runs one item at a time."""
    asked = settings.DB_POOL_SIZE
    if asked is None or connections["default"].vendor != "postgresql":
        return []
    total = asked + (settings.DB_MAX_OVERFLOW or 0)
    if total > RESERVED:
        return []
    return [
        Warning(
            f"A pool of {total} connections serves 1 item at a time: a worker keeps {RESERVED} for its own threads.",
            hint=f"Raise DB_POOL_SIZE or DB_MAX_OVERFLOW to {RESERVED} more than the items that shall run at once, or unset both.",
            id="workqueue.W001",
        )
    ]
