"""The row type of a timetable, and the way from a key to its row and function.

Found through settings.WORKQUEUE_HANDLERS, so that another project can bring a
timetable of its own and the queue stays ignorant of the domain.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any, cast

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.module_loading import import_string

from workqueue.context import Context, Outcome
from workqueue.exceptions import UnknownHandler

type Run = Callable[[Context], Outcome]
type Due = Callable[[datetime], QuerySet[Any, Any]]  # now -> ids of tenants with work


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A reason for which a tenant is left out of a tick."""

    reason: str  # counted on the tick and shown by `why`: "licence expired"
    holds: Callable[[datetime], Q]  # now -> the tenants that ARE eligible
    setting: str = ""  # what it asks of the environment, which each process has its own


ACTIVE = Condition(reason="inactive", holds=lambda _: Q(is_active=True))
LICENSED = Condition(
    reason="licence expired",
    holds=lambda now: Q(licence_expires_at=None) | Q(licence_expires_at__gt=now),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfire:
    """What becomes of slots that nobody ticked."""

    rule: str = "latest"  # latest: the newest once | skip | all: one after the other
    at_most: int = 1  # for all: the newest n


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Retries of a failed attempt. None by default: the next tick is the retry."""

    attempts: int = 0  # after the first
    base: timedelta = timedelta(seconds=60)
    cap: timedelta = timedelta(hours=1)


DAILY_RETRY = Retry(attempts=3)  # daily and rarer rows: 3, 60 s, 1 h


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A row of the timetable."""

    key: str  # = the path below the handlers' package: "notifications.deliver"
    title: str  # the name operators know: "Notification Handler"
    purpose: str  # one sentence
    cadence: (
        str | None
    )  # "10s", "daily 23:00", "monthly 1,15 00:00", cron; None: on demand
    scope: str = (
        "tenant"  # tenant | platform | dotted path of a query of (tenant id, key) pairs
    )
    eligible: tuple[Condition, ...] = (
        ACTIVE,
    )  # all must hold; the first that does not is counted
    misfire: Misfire = field(default_factory=Misfire)
    retry: Retry = field(default_factory=Retry)
    abandon: str = "requeue"  # requeue | fail | hold: when its process stops reporting
    time_limit: timedelta = timedelta(hours=1)
    keep_empty: timedelta = timedelta(
        days=7
    )  # how long runs that found nothing are kept
    at_start: bool = False  # also once per term, unless one ran within its cadence


@cache
def rows() -> dict[str, Handler]:
    """The timetable, by key, in its own order."""
    table = import_string(settings.WORKQUEUE_HANDLERS)
    return {row.key: row for row in table}


def row(key: str) -> Handler:
    """The row of a key. Raises UnknownHandler."""
    try:
        return rows()[key]
    except KeyError:
        raise UnknownHandler(f"no row of the timetable has the key {key!r}") from None


def title(key: str) -> str:
    """What operators call it; the key itself where no row has it any more."""
    found = rows().get(key)
    return found.title if found else key


def job_types() -> list[str]:
    """The types of long jobs, which can be paused too; their table is the job worker's."""
    return [row.type for row in import_string(settings.JOBWORKER_TYPES)]


def not_set() -> list[str]:
    """Settings that conditions ask for and this process does not have; for its report."""
    asked = {one.setting for row in rows().values() for one in row.eligible}
    return sorted(name for name in asked if name and not getattr(settings, name, None))


@cache
def load(key: str) -> Run:
    """The function that runs a key, imported on first use. Raises UnknownHandler."""
    return cast(Run, _module(key).run)


@cache
def due(key: str) -> Due | None:
    """The key's probe for tenants that have work, where it has one."""
    return cast(Due | None, getattr(_module(key), "due", None))


def _module(key: str) -> Any:
    row(key)
    return import_module(f"{settings.WORKQUEUE_HANDLERS_PACKAGE}.{key}")
