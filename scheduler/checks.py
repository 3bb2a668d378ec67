"""checks: what is wrong with a timetable, before anything runs.

Every id is for ever. A row that fails here would flag itself at run time; the check
says so before the release does.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.utils.module_loading import import_string

from scheduler import bootstrap, cadence
from scheduler.exceptions import InvalidCadence
from scheduler.tick import FAST
from workqueue import registry
from workqueue.models import WorkItem
from workqueue.registry import Handler

RULES = ("latest", "skip", "all")


def check_timetable(**_: Any) -> list[CheckMessage]:
    """Every row reads, imports and has a purpose."""
    try:
        rows: tuple[Handler, ...] = tuple(import_string(settings.WORKQUEUE_HANDLERS))
    except ImportError as problem:
        hint = "Set WORKQUEUE_HANDLERS to the dotted path of a tuple of Handler rows."
        return [
            Error(
                f"The timetable cannot be imported: {problem}",
                hint=hint,
                id="scheduler.E001",
            )
        ]
    found = [message for row in rows for look in LOOKS for message in look(row)]
    doubled = [
        key for key, count in Counter(row.key for row in rows).items() if count > 1
    ]
    found += [
        Error(
            f"Two rows of the timetable have the key {key}.",
            hint="Remove one.",
            id="scheduler.E002",
        )
        for key in doubled
    ]
    return found


def check_bootstrap(**_: Any) -> list[CheckMessage]:
    """Every step of the bootstrap imports, and its name is its own."""
    steps = [*bootstrap.BUILT_IN_RECORDS, *(path for _, path in bootstrap.DATA_STEPS)]
    found: list[CheckMessage] = [
        Error(
            f"The bootstrap step {path} cannot be imported: {why}",
            hint="Correct its path in scheduler/bootstrap.py.",
            id="scheduler.E010",
        )
        for path in steps
        if (why := _import_problem(path))
    ]
    names = Counter(name for name, _ in bootstrap.DATA_STEPS)
    found += [
        Error(
            f"Two data steps have the name {name}.",
            hint="A name is for ever: give the new one another.",
            id="scheduler.E011",
        )
        for name, count in names.items()
        if count > 1
    ]
    return found


def _purpose(row: Handler) -> Iterator[CheckMessage]:
    if not row.title.strip() or not row.purpose.strip().endswith("."):
        yield _error(
            row,
            "needs a title and a purpose",
            "Say in one sentence what it is for, with a full stop.",
            id="scheduler.E003",
        )


def _cadence(row: Handler) -> Iterator[CheckMessage]:
    if row.cadence is None:
        return
    try:
        made = cadence.parse(row.cadence, _zone())
    except InvalidCadence as refused:
        yield _error(
            row,
            f"has no valid cadence: {refused}",
            cadence.EXAMPLES,
            id="scheduler.E004",
        )
        return
    if (
        made.period < FAST
        and not _import_problem(f"{_module(row)}.run")  # which says it itself
        and registry.due(row.key) is None
    ):
        hint = "Give its module due(now), or a cadence of 10s or more."
        yield _error(
            row,
            "ticks more often than every 10 s and cannot say who has work",
            hint,
            id="scheduler.E005",
        )


def _run(row: Handler) -> Iterator[CheckMessage]:
    path = f"{_module(row)}.run"
    if why := _import_problem(path):
        yield _error(
            row,
            f"has no {path}: {why}",
            "A key is the path of its module below the handlers.",
            id="scheduler.E006",
        )


def _scope(row: Handler) -> Iterator[CheckMessage]:
    if row.scope not in ("tenant", "platform") and (why := _import_problem(row.scope)):
        yield _error(
            row,
            f"has the scope {row.scope}: {why}",
            "tenant, platform, or a dotted path.",
            id="scheduler.E007",
        )


def _rules(row: Handler) -> Iterator[CheckMessage]:
    if row.misfire.rule not in RULES or row.misfire.at_most < 1:
        yield _error(
            row,
            f"has the misfire rule {row.misfire.rule}",
            "latest, skip, or all with at_most >= 1.",
            id="scheduler.E008",
        )
    if row.abandon not in WorkItem.Abandon:
        yield _error(
            row,
            f"has the abandon rule {row.abandon}",
            ", ".join(WorkItem.Abandon.values),
            id="scheduler.E009",
        )


LOOKS: tuple[Callable[[Handler], Iterator[CheckMessage]], ...] = (
    _purpose,
    _cadence,
    _run,
    _scope,
    _rules,
)


def _error(row: Handler, text: str, hint: str, *, id: str) -> Error:
    return Error(f"The row {row.key} {text}.".replace("..", "."), hint=hint, id=id)


def _module(row: Handler) -> str:
    return f"{settings.WORKQUEUE_HANDLERS_PACKAGE}.{row.key}"


def _import_problem(path: str) -> str:
    """Why a dotted path does not give something to call; "" = it does."""
    try:
        import_string(path)
    except Exception as problem:  # an import runs code, and code may do anything
        return f"{type(problem).__name__}: {problem}"
    return ""


def _zone() -> str:
    """A wrong SERVER_TIME_ZONE has a check of its own."""
    try:
        return ZoneInfo(settings.SERVER_TIME_ZONE).key
    except (ZoneInfoNotFoundError, ValueError):
        return "UTC"
