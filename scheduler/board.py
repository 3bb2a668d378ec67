"""board: the Timetable page: a row per handler, and one of them opened.

Joins the timetable, the operators' overrides, pauses, live items and the newest runs
in a fixed number of statements, however many handlers there are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Min
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from audit import drawings, queries, recent, words
from audit.recent import Recent
from audit.rows import ChangeRow
from scheduler import cadence
from scheduler.exceptions import InvalidCadence
from scheduler.models import Schedule
from workqueue import live, registry
from workqueue.live import PauseRow
from workqueue.models import Tenant, WorkItem
from workqueue.registry import Handler

NEXT = 10  # slots of the opened row
RUNS = 50  # newest runs, drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One of the next runs."""

    at: datetime
    server: str  # "Tue 1 Dec 2026, 00:00", in server time
    yours: str  # "30 Nov 23:00", in the reader's time
    changed: str  # "summer time since 28 Mar", where clocks change before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the timetable as it stands now."""

    handler: Handler
    cadence: str  # as it is typed, in force; "": on demand
    words: str  # "Daily at 23:00"
    default: str  # the timetable's own in words, where an operator changed it
    schedule: Schedule | None  # null: no master has seen it yet
    on_the_wall: (
        bool  # its slots follow the clock of a zone, not multiples of an interval
    )
    problem: str  # why it does not tick
    pause: PauseRow | None
    next: datetime | None
    executing_since: datetime | None  # the oldest that runs now
    runs: tuple[Recent, ...]  # newest first
    drawn: SafeString

    @property
    def last(self) -> Recent | None:
        """The newest finished run."""
        return self.runs[0] if self.runs else None

    @property
    def address(self) -> str:
        """The page with this row opened."""
        return reverse("admin:timetable_row", args=[self.handler.key])

    @property
    def changed(self) -> bool:
        """An operator's cadence is in force."""
        return bool(self.default)

    @property
    def requested(self) -> datetime | None:
        """An operator asked to run it, and no master has come to it yet."""
        return self.schedule.run_requested_at if self.schedule else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the opened row says besides."""

    slots: tuple[Slot, ...]
    runs_for: str
    missed: str
    fails: str
    abandoned: str
    slowest: timedelta | None  # of the newest runs


SHOWN: dict[str, Callable[[Line], bool]] = {
    "paused": lambda line: line.pause is not None,
    "changed": lambda line: line.changed,
    "failing": lambda line: (
        line.last is not None and line.last.outcome in {"failed", "abandoned"}
    ),
}


def lines(now: datetime) -> list[Line]:
    """All rows of the timetable, in its order."""
    rows = registry.rows()
    schedules = {row.key: row for row in Schedule.objects.filter(key__in=rows)}
    runs = recent.by_handler(list(rows), per=RUNS)
    executing = dict(
        WorkItem.objects.executing()
        .order_by()
        .values_list("handler")
        .annotate(Min("started_at"))
    )
    current = live.current()
    return [
        _line(
            handler,
            schedule=schedules.get(key),
            pause=_pause(key, current.pauses, now=now),
            runs=runs.get(key, ()),
            executing=executing.get(key),
            now=now,
        )
        for key, handler in rows.items()
    ]


def line(key: str, *, now: datetime) -> Line | None:
    """One row, or None where the timetable has no such key."""
    return next((one for one in lines(now) if one.handler.key == key), None)


def opened(line: Line, *, now: datetime) -> Opened:
    """The row's rules in sentences, and its next slots."""
    handler = line.handler
    ran = [run.ran for run in line.runs if run.ran is not None]
    return Opened(
        slots=tuple(_slots(line, now=now)),
        runs_for=_runs_for(handler, now=now),
        missed=_missed(handler),
        fails=_fails(handler),
        abandoned={
            "requeue": "goes back to the queue; a handler starts at least once",
            "fail": "is failed; it starts at most once",
            "hold": "is held until an operator retries or drops it",
        }.get(handler.abandon, handler.abandon),
        slowest=max(ran, default=None),
    )


def history(key: str, *, limit: int) -> list[ChangeRow]:
    """What operators did to a handler, newest first: its cadence, run now, its pauses."""
    subjects = (f"handler:{key}", f"pause:handler:{key}")
    found = [
        change
        for subject in subjects
        for change in queries.changes_of(subject, limit=limit)
    ]
    return sorted(found, key=lambda change: change.at, reverse=True)[:limit]


def matches(line: Line, *, text: str, show: str) -> bool:
    """Whether the search and the chosen view leave the row in."""
    wanted = text.casefold()
    named = wanted in line.handler.title.casefold() or wanted in line.handler.key
    test = SHOWN.get(show)
    return named and (test is None or test(line))


def counts(these: Sequence[Line]) -> dict[str, int]:
    """How many rows each view shows."""
    return {
        "all": len(these),
        **{name: sum(map(test, these)) for name, test in SHOWN.items()},
    }


def _line(
    handler: Handler,
    *,
    schedule: Schedule | None,
    pause: PauseRow | None,
    runs: Sequence[Recent],
    executing: datetime | None,
    now: datetime,
) -> Line:
    override = schedule.cadence if schedule else ""
    text = override or handler.cadence or ""
    problem = schedule.problem if schedule else ""
    upcoming = None
    try:
        parsed = _parsed(text) if text else None
    except InvalidCadence as wrong:
        parsed, problem = None, problem or str(wrong)
    if parsed is not None:
        upcoming = parsed.next_after(now)
    return Line(
        handler=handler,
        cadence=text,
        words=_words(handler, parsed.words if parsed else text),
        default=_default(handler) if override and override != handler.cadence else "",
        schedule=schedule,
        on_the_wall=isinstance(parsed, cadence.Calendar),
        problem=problem,
        pause=pause,
        next=upcoming,
        executing_since=executing,
        runs=tuple(runs),
        drawn=drawings.last_runs([(run.outcome, run.ran) for run in reversed(runs)]),
    )


def _parsed(text: str) -> cadence.Cadence:
    return cadence.parse(text, settings.TIME_ZONE)


def _words(handler: Handler, said: str) -> str:
    parts = [said] * bool(said) + ["at start"] * handler.at_start
    return ", ".join(parts) if parts else "On demand"


def _default(handler: Handler) -> str:
    if not handler.cadence:
        return "on demand"
    said = _parsed(handler.cadence).words
    return said[0].lower() + said[1:]


def _pause(key: str, pauses: Sequence[PauseRow], *, now: datetime) -> PauseRow | None:
    """The pause that stops this handler for every tenant."""
    stopping = (
        row
        for row in pauses
        if (
            row.scope == "everything" or (row.scope == "handler" and row.handler == key)
        )
        and (row.until is None or row.until > now)
    )
    return next(stopping, None)


def _slots(line: Line, *, now: datetime) -> Iterator[Slot]:
    """The next slots in both times; the first after a change of the clocks says so."""
    if not line.cadence or line.problem:
        return
    server, reader = ZoneInfo(settings.TIME_ZONE), timezone.get_current_timezone()
    parsed, before = _parsed(line.cadence), now
    for at in islice(_following(parsed, now), NEXT):
        local, own = at.astimezone(server), at.astimezone(reader)
        seconds = at.second or parsed.period < timedelta(minutes=1)
        clock = "%H:%M:%S" if seconds else "%H:%M"
        yield Slot(
            at=at,
            server=f"{local:%a %-d %b %Y, {clock}}",
            yours=f"{own:%-d %b {clock}}",
            changed=_turned(before, local) or _turned(before, own, where="yours: "),
        )
        before = at


def _turned(before: datetime, later: datetime, *, where: str = "") -> str:
    """What the clocks of a zone did between the two; "" where they did nothing."""
    earlier = before.astimezone(later.tzinfo)
    if later.utcoffset() == earlier.utcoffset():
        return ""
    season = "summer" if later.dst() else "winter"
    return f"{where}{season} time since {_change(earlier, later):%-d %b}"


def _following(parsed: cadence.Cadence, moment: datetime) -> Iterator[datetime]:
    following = parsed.next_after(moment)
    while following is not None:
        yield following
        following = parsed.next_after(following)


def _change(earlier: datetime, later: datetime) -> datetime:
    """The day on which the zone's offset changed between the two."""
    zone, low, high = later.tzinfo, earlier.astimezone(UTC), later.astimezone(UTC)
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == earlier.utcoffset():
            low = middle
        else:
            high = middle
    return high.astimezone(zone)


def _runs_for(handler: Handler, *, now: datetime) -> str:
    if handler.scope == "platform":
        return "the platform, once"
    everyone = Tenant.objects.filter(is_platform=False)
    eligible = everyone
    for condition in handler.eligible:
        eligible = eligible.filter(condition.holds(now))
    left_out = " and ".join(f"not {condition.reason}" for condition in handler.eligible)
    of = f"{eligible.count():,} of {everyone.count():,} tenants"
    each = of if handler.scope == "tenant" else f"every pair that it lists, of {of}"
    return f"{each}: those {left_out}" if left_out else each


def _missed(handler: Handler) -> str:
    if handler.misfire.rule == "skip":
        return "missed slots are left out"
    if handler.misfire.rule == "all":
        return f"the newest {handler.misfire.at_most:,} missed slots run, one after the other"
    return "the newest missed slot runs once"


def _fails(handler: Handler) -> str:
    retry = handler.retry
    if not retry.attempts:
        return "the next slot is the retry" if handler.cadence else "it is not retried"
    base, cap = words.duration(retry.base), words.duration(retry.cap)
    return f"{words.plural(retry.attempts, 'retry', 'retries')}, the first after {base}, at most {cap} apart"
