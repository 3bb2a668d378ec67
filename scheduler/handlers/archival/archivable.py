"""archivable: the types of record that a policy can speak of, by dotted path.

A new type is one line here and a `Rows` beside its table.
"""

from functools import cache

from django.utils.module_loading import import_string

from audit.retention import Rows
from scheduler.handlers.archival.exceptions import ArchiveError

TYPES = (
    "audit.retention.RUNS",
    "audit.retention.EVENTS",
    "scheduler.handlers.archival.archivable.NOTIFICATIONS",
    "scheduler.handlers.archival.archivable.JOBS",
)

# Terminal ones: all others have no finished_at. What an operator sends again has
# none either, and stays.
NOTIFICATIONS = Rows(
    name="notifications",
    title="Notifications",
    model="notifications.Notification",
    time="finished_at",
    keep_days=90,
    slug=None,
)

# What has not ended has no finished_at. Their runs and lines are records of their own.
JOBS = Rows(
    name="jobs",
    title="Long jobs",
    model="jobworker.Job",
    time="finished_at",
    keep_days=365,
    slug="tenant_slug",
)


@cache
def types() -> dict[str, Rows]:
    """All of them by name, in the order in which a run takes them."""
    found: list[Rows] = [import_string(path) for path in TYPES]
    return {rows.name: rows for rows in found}


def type_of(name: str) -> Rows:
    """The type of that name. Raises ArchiveError."""
    try:
        return types()[name]
    except KeyError:
        known = ", ".join(types())
        raise ArchiveError(
            f"archive: no record type {name!r}; there are {known}"
        ) from None


def title(name: str) -> str:
    """What operators call it; the name itself where it is known no more."""
    found = types().get(name)
    return found.title if found else name
