"""words: times, durations, numbers and states, as every screen and command says them.

Pure functions; the reader's zone is Django's current one, and `ages` says whether he is
told how long ago something was or when. One word for one thing: list, page, filter,
export and command take their words from here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone

SPACE = "\u00a0"  # no-break, before a unit
UNKNOWN = "\u2013"
DAY = timedelta(days=1)
# What turns text round or cannot be seen. (Joiners of emoji and of scripts stay.)
INVISIBLE = frozenset(
    "\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
)
# With controls and half surrogates; a page of a thousand lines asks for every character.
_HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff"
    + "".join(sorted(INVISIBLE))
    + "]"
)

_ages: ContextVar[bool] = ContextVar("ages", default=True)


@dataclass(frozen=True, slots=True)
class State:
    """A state as it is shown: always icon and word together."""

    icon: str  # symbol of icons.svg
    tone: str  # "" | is-run | is-warn | is-fail | is-off
    word: str


STATES = {
    # Items.
    "pending": State("waiting", "", "Waiting"),
    "executing": State("running", "is-run", "Executing"),
    "held": State("held", "is-warn", "Held"),
    # Runs. Success has no colour.
    "succeeded": State("check", "", "Succeeded"),
    "partial": State("partial", "is-warn", "Partial"),
    "failed": State("cross", "is-fail", "Failed"),
    "cancelled": State("cancelled", "is-off", "Cancelled"),
    "abandoned": State("abandoned", "is-fail", "Abandoned"),
    "late": State("late", "is-off", "Late result"),
    # Long jobs, beside the runs' words.
    "job_pending": State("waiting", "", "Pending"),
    "job_running": State("running", "is-run", "Running"),
    # Processes.
    "master": State("master", "is-run", "Master"),
    "standby": State("check", "", "Standby"),
    "running": State("check", "", "Running"),
    "draining": State("down", "is-run", "Draining"),
    "silent": State("alert", "is-warn", "Silent"),
    "stopped": State("stopped", "is-off", "Stopped"),
    "skewed": State("alert", "is-warn", "Clock off"),
    # Limits.
    "paused": State("paused", "is-warn", "Paused"),
    "reduced": State("reduced", "is-warn", "Reduced"),
}


def number(value: int | None) -> str:
    """1,204; unknown is a dash, never 0."""
    return UNKNOWN if value is None else f"{value:,}"


def plural(count: int, one: str, many: str = "") -> str:
    """'1 item', '37 items'."""
    return f"{count:,}{SPACE}{one if count == 1 else many or one + 's'}"


def duration(span: timedelta | None) -> str:
    """88 ms, 1.94 s, 41 s, 4 min 38 s, 5 h 18 min, 1 d 8 h: two units at most."""
    if span is None:
        return UNKNOWN
    if span < timedelta():
        return "\u2212" + duration(-span)
    seconds = span.total_seconds()
    if not seconds:
        return f"0{SPACE}s"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}{SPACE}ms"
    if seconds < 9.995:
        return f"{seconds:.2f}".removesuffix(".00") + f"{SPACE}s"
    return _units(round(seconds))


def _units(seconds: int, *, at_most: int = 2) -> str:
    """Whole seconds in the one or two largest units."""
    left = seconds
    parts: list[tuple[int, str]] = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or parts or unit == "s":
            parts.append((count, unit))
        if len(parts) == at_most:
            break
    shown = [f"{count:,}{SPACE}{unit}" for count, unit in parts if count]
    return " ".join(shown) or f"0{SPACE}s"


@contextmanager
def ages(*, shown: bool) -> Iterator[None]:
    """Within the block, `told` says ages, or moments to the second."""
    token = _ages.set(shown)
    try:
        yield
    finally:
        _ages.reset(token)


def told(moment: datetime | None, now: datetime) -> str:
    """'7 s ago', or 'today 14:31:58' for a reader who wants moments."""
    if moment is None or _ages.get():
        return ago(moment, now)
    return day_and_time(moment, now, seconds=True)


def ago(moment: datetime | None, now: datetime) -> str:
    """'7 s ago', 'in 2 min 50 s'; beyond a day 'yesterday 22:04', '26 Nov 09:30'."""
    if moment is None:
        return UNKNOWN
    past = now - moment
    if abs(past) < timedelta(seconds=1):
        return "just now"
    if past < timedelta():
        return f"in{SPACE}{_units(round(-past.total_seconds()))}"
    if past >= DAY:
        return day_and_time(moment, now)
    seconds = int(past.total_seconds())
    # From 10 h on, and below one hour, the second unit tells nobody anything.
    units = 2 if 3600 <= seconds < 36_000 else 1
    return f"{_units(seconds, at_most=units)} ago"


def day_and_time(moment: datetime, now: datetime, *, seconds: bool = False) -> str:
    """'today 09:14', 'yesterday 22:04', '26 Nov 09:30', another year with its number."""
    local, today = timezone.localtime(moment), timezone.localtime(now).date()
    clock = f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"
    if local.date() == today:
        return f"today {clock}"
    if local.date() == today - DAY:
        return f"yesterday {clock}"
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%b}{year} {clock}"


def exact(moment: datetime) -> str:
    """'2026-11-29 14:31:58 UTC': what a pointer shows over any time."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def precise(moment: datetime, *, day: bool = False) -> str:
    """'14:31:58.204', or '2026-11-29 14:31:58.204': to the millisecond, in the page's zone."""
    local = timezone.localtime(moment)
    return f"{local:%Y-%m-%d %H:%M:%S.%f}"[:-3] if day else f"{local:%H:%M:%S.%f}"[:-3]


def iso(moment: datetime) -> str:
    """The machine's form, for `datetime` attributes and exports."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"


def shown(text: str, *, limit: int = 200) -> str:
    """Text of unknown origin made safe to look at: controls visible, length bounded.

    Escaping is the template's work. A control or bidirectional character would
    vanish or turn its neighbours round, so its number stands in its place.
    """
    kept = text if len(text) <= limit else text[:limit]
    clean = _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", kept)
    return clean if kept is text else f"{clean}\u2026 ({len(text):,} characters)"
