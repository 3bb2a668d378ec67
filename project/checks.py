"""checks: what is allowed, and will hurt. `manage.py check --deploy` says all of it.

Ids stay for ever. What makes a start impossible is not here: it is refused by
configuration.py before any command runs.
"""

import os
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError

from jobworker import connection_budget
from project import environment
from workqueue import budget


@register(Tags.compatibility)
def check_names(**_: Any) -> list[CheckMessage]:
    """project.W001: a misspelt variable does nothing, silently."""
    return [
        Warning(
            f"The environment variable {name} is not one of ours: it does nothing.",
            hint="`manage.py showconfig` lists the variables that exist.",
            id="project.W001",
        )
        for name in environment.unknown(os.environ)
    ]


# Not Tags.database: those are asked only by `check --database`.
@register(Tags.compatibility, deploy=True)
def check_database(**_: Any) -> list[CheckMessage]:
    """project.W002: SQLite is for one machine."""
    if not settings.SQLITE:
        return []
    return [
        Warning(
            "SQLite in production: one machine only, and a process that stops in a transaction stops all writers.",
            hint="Set DATABASE_URL=postgresql://user:password@host:5432/name.",
            id="project.W002",
        )
    ]


@register(Tags.security, deploy=True)
def check_address(**_: Any) -> list[CheckMessage]:
    """project.W003: links and forms need to know where people come in."""
    if settings.BASE_URL_IS_SET:
        return []
    return [
        Warning(
            f"BASE_URL is not set: links in e-mails lead to {settings.BASE_URL}.",
            hint="Set BASE_URL=https://millrace.example.com, the address that people type.",
            id="project.W003",
        )
    ]


# Not Tags.database: those are asked only by `check --database`.
@register(Tags.compatibility, deploy=True)
def check_pool(**_: Any) -> list[CheckMessage]:
    """project.W004: workers and job workers keep four connections for themselves."""
    size = settings.DB_POOL_SIZE
    if settings.SQLITE or size is None or size + (settings.DB_MAX_OVERFLOW or 0) > 4:
        return []
    return [
        Warning(
            f"DB_POOL_SIZE={size}: a worker keeps 4 connections for itself and runs one item or job at a time with the rest.",
            hint="Set DB_POOL_SIZE to WORKER_CONCURRENCY + 4, for a job worker to twice its total + 4, or leave it out.",
            id="project.W004",
        )
    ]


@register(Tags.database)
def check_budget(*, databases: Any = None, **_: Any) -> list[CheckMessage]:
    """project.W005: all processes together may want more connections than there are."""
    if settings.SQLITE or not databases:  # asked for by --database default
        return []
    try:
        found = connection_budget.look()
    except DatabaseError:
        return []  # not migrated yet, or away: others say that
    if found.spare >= 0:
        return []
    return [
        Warning(
            f"The processes that run now may open {found.wanted} connections; {found.limit} are theirs "
            f"(max_connections {found.maximum} less {budget.KEPT_BY_SERVER} for the server and for others).",
            hint=f"Raise max_connections to {found.wanted + budget.KEPT_BY_SERVER} or more, lower DB_POOL_SIZE, or run fewer processes.",
            id="project.W005",
        )
    ]
