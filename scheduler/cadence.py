"""Cadences: text -> slots, the instants that a row of the timetable stands for.

Pure: no database, no clock. Slots are computed, never counted up from the last
run, so a restart changes none of them. Intervals are aligned to multiples since the
epoch. `daily`, `monthly` and five-field cron follow the wall clock of a time zone:
a local time that does not exist runs at the first instant after the gap, one that
occurs twice runs once. A cron expression for every hour follows elapsed time
instead, so that `*/30` is half an hour on the day the clocks change too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from scheduler.exceptions import InvalidCadence

LONGEST_TEXT = 100  # characters; Schedule.cadence holds no more
MOST_COUNTED = (
    10_000  # missed slots of a calendar cadence; beyond it the count is "at least"
)
LONGEST_INTERVAL = timedelta(days=366)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EXAMPLES = "Examples: 10s, 5m, 12h, daily 23:00, monthly 1,15 00:00, 0 */4 * * 1-5."

# [0-9], not \d: digits of other scripts are refused, as everywhere.
_INTERVAL = re.compile(r"([0-9]{1,9})([smhd])")
_DAILY = re.compile(r"daily ([0-9]{1,2}):([0-9]{2})")
_MONTHLY = re.compile(
    r"monthly ([0-9]{1,2}(?:,[0-9]{1,2})*|last) ([0-9]{1,2}):([0-9]{2})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The slots in a span of time that has gone by."""

    count: int  # at least this many, where it is MOST_COUNTED
    newest: tuple[datetime, ...]  # the last few, oldest first


class Cadence(Protocol):
    """What every cadence can say of itself."""

    @property
    def words(self) -> str:
        """'Daily at 23:00'."""

    @property
    def period(self) -> timedelta:
        """The shortest distance of two slots in the near future."""

    def __hash__(self) -> int:
        """Its answers can be remembered."""

    def next_after(self, moment: datetime) -> datetime | None:
        """The first slot later than `moment`; None: there is none within 50 years."""

    def newest(self, *, since: datetime, now: datetime) -> Iterator[datetime]:
        """Slots after `since` up to and including `now`, the newest first."""

    def count(self, *, since: datetime, now: datetime) -> int:
        """How many slots there are after `since` up to and including `now`."""


def parse(text: str, zone: str) -> Cadence:
    """The cadence that `text` means in the time zone `zone`.

    Raises InvalidCadence with a sentence for the form. Bounded in time: an
    expression whose date never comes is refused, not searched for.
    """
    found = _read(text, zone)
    if isinstance(found, str):
        raise InvalidCadence(found)
    return found


@lru_cache(maxsize=512)
def _read(text: str, zone: str) -> Cadence | str:
    """A cadence, or why it is none. Refusals are remembered too: the ticker asks at every pass."""
    try:
        return _parse(" ".join(text.split()), zone=zone)
    except InvalidCadence as refused:
        return str(refused)


def _parse(text: str, *, zone: str) -> Cadence:
    if not text:
        raise InvalidCadence(f"Enter a cadence. {EXAMPLES}")
    if len(text) > LONGEST_TEXT:
        raise InvalidCadence(
            f"A cadence has at most {LONGEST_TEXT} characters; this has {len(text)}."
        )
    if found := _INTERVAL.fullmatch(text):
        return _interval(int(found[1]), unit=found[2])
    if found := _DAILY.fullmatch(text):
        clock = _clock(found[1], found[2])
        expression = f"{clock.minute} {clock.hour} * * *"
        return _calendar(expression, zone=zone, words=f"Daily at {clock:%H:%M}")
    if found := _MONTHLY.fullmatch(text):
        return _monthly(found[1], clock=_clock(found[2], found[3]), zone=zone)
    return _cron(text, zone=zone)


def missed(
    cadence: Cadence, *, since: datetime, now: datetime, at_most: int = 1
) -> Missed:
    """The slots after `since` up to and including `now`: their number and the newest few."""
    newest = tuple(islice(cadence.newest(since=since, now=now), at_most))[::-1]
    count = cadence.count(since=since, now=now) if newest else 0
    return Missed(count=count, newest=newest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Every so often: multiples of the period since the epoch, in no zone."""

    period: timedelta
    words: str

    def next_after(self, moment: datetime) -> datetime | None:
        """The first multiple later than `moment`."""
        return EPOCH + ((moment - EPOCH) // self.period + 1) * self.period

    def newest(self, *, since: datetime, now: datetime) -> Iterator[datetime]:
        """Multiples after `since` up to `now`, the newest first."""
        slot = EPOCH + (now - EPOCH) // self.period * self.period
        while slot > since:
            yield slot
            slot -= self.period

    def count(self, *, since: datetime, now: datetime) -> int:
        """By arithmetic: two weeks of a two-second row are 604,800."""
        return max(0, (now - EPOCH) // self.period - (since - EPOCH) // self.period)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Times on the wall clock of a zone, by cron's five fields."""

    expression: str
    zone: ZoneInfo
    elapsed: bool  # every hour: follow elapsed time, not the wall clock
    words: str
    period: timedelta

    def next_after(self, moment: datetime) -> datetime | None:
        """The first slot later than `moment`."""
        return next(
            (slot for slot in self._walk(moment, back=False) if slot > moment), None
        )

    def newest(self, *, since: datetime, now: datetime) -> Iterator[datetime]:
        """Slots after `since` up to `now`, the newest first."""
        before = None
        for slot in self._walk(now, back=True):
            if slot <= since:
                return
            # Two local times in one gap are one slot, at the gap's end.
            if slot <= now and slot != before:
                yield slot
                before = slot

    def count(self, *, since: datetime, now: datetime) -> int:
        """By walking, and no further than MOST_COUNTED."""
        return sum(1 for _ in islice(self.newest(since=since, now=now), MOST_COUNTED))

    def _walk(self, moment: datetime, *, back: bool) -> Iterator[datetime]:
        """Slots from around `moment` on, in order; the first ones may lie on its other side."""
        local = moment.astimezone(self.zone)
        if self.elapsed:
            # A second too far, since cronsim leaves out the instant it starts from.
            start = (
                (moment + timedelta(seconds=1)).astimezone(self.zone) if back else local
            )
            yield from (
                slot.astimezone(UTC)
                for slot in CronSim(self.expression, start, reverse=back)
            )
            return
        # cronsim walks naive local times, which are in the order of their instants:
        # all times of a gap are its end, and the first of two equal ones counts.
        start = local.replace(tzinfo=None)
        if back:
            start += self._farthest_shift(moment) + timedelta(seconds=1)
        yield from (
            self._instant(naive)
            for naive in CronSim(self.expression, start, reverse=back)
        )

    def _instant(self, naive: datetime) -> datetime:
        """The instant of a local time: the first of two, the first after a gap."""
        instant = naive.replace(tzinfo=self.zone).astimezone(UTC)
        while instant.astimezone(self.zone).replace(tzinfo=None) != naive:
            naive += timedelta(minutes=1)
            instant = naive.replace(tzinfo=self.zone).astimezone(UTC)
        return instant

    def _farthest_shift(self, moment: datetime) -> timedelta:
        """How far ahead of `moment` a local time can stand whose instant is not later."""
        around = {
            (moment + timedelta(days=days)).astimezone(self.zone).utcoffset()
            for days in (-1, 0, 1)
        }
        return timedelta(hours=25) if len(around) > 1 else timedelta()


def _interval(number: int, *, unit: str) -> Interval:
    if not timedelta() < number * UNITS[unit] <= LONGEST_INTERVAL:
        raise InvalidCadence(
            f"{number}{unit} is out of range. Enter an interval from 1s to 366d."
        )
    period = number * UNITS[unit]
    names = {"s": "s", "m": "min", "h": "h", "d": "d"}
    words = f"Every {number}\N{NO-BREAK SPACE}{names[unit]}"
    whole = {
        timedelta(hours=1): "Every hour, on the hour",
        timedelta(minutes=1): "Every minute",
        timedelta(days=1): "Daily at 00:00 UTC",
    }
    return Interval(period=period, words=whole.get(period, words))


def _clock(hour: str, minute: str) -> datetime:
    """A time of day; the date means nothing."""
    if int(hour) > 23 or int(minute) > 59:
        raise InvalidCadence(
            f"{hour}:{minute} is not a time of day. Enter one from 00:00 to 23:59."
        )
    return EPOCH.replace(hour=int(hour), minute=int(minute))


def _monthly(days: str, *, clock: datetime, zone: str) -> Calendar:
    if days == "last":
        names, field = ["last day"], "L"
    else:
        numbers = sorted({int(day) for day in days.split(",")})
        if not 1 <= numbers[0] <= numbers[-1] <= 31:
            raise InvalidCadence(
                f"{days} are not days of a month. Enter numbers from 1 to 31, or last."
            )
        names, field = (
            [_ordinal(number) for number in numbers],
            ",".join(map(str, numbers)),
        )
    listed = " and ".join(
        [", ".join(names[:-1]), names[-1]] if len(names) > 1 else names
    )
    words = f"At {clock:%H:%M} on the {listed}" + (
        " of the month" if days == "last" else ""
    )
    return _calendar(f"{clock.minute} {clock.hour} {field} * *", zone=zone, words=words)


def _ordinal(number: int) -> str:
    ending = (
        "th" if 10 < number < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"


def _cron(text: str, *, zone: str) -> Calendar:
    if text.lower() == "@reboot":
        raise InvalidCadence(
            "@reboot is not a time. A row that runs at start says at_start in the timetable."
        )
    expression = ALIASES.get(text.lower(), text)
    fields = len(expression.split())
    if fields != 5:
        why = "It would be read as seconds." if fields == 6 else EXAMPLES
        raise InvalidCadence(
            f"{text!r} is not a cadence: a cron expression has 5 fields, this has {fields}. {why}"
        )
    return _calendar(expression, zone=zone, words=None)


def _calendar(expression: str, *, zone: str, words: str | None) -> Calendar:
    """Check the expression, and that its date ever comes."""
    try:
        simulated = CronSim(expression, datetime(2024, 1, 1))  # noqa: DTZ001  a local time, in no zone yet
        first = list(islice(simulated, 5))
    except CronSimError as problem:
        raise InvalidCadence(
            f"{expression!r} is not a cron expression: {_spelled(problem)}."
        ) from problem
    if len(first) < 2:
        raise InvalidCadence(
            f"{expression!r} never comes: there is no such date within 50 years."
        )
    minute, hour, *date = expression.split()
    # An hour field that means all hours is written `*` for cronsim, which looks at its spelling.
    elapsed = simulated.hours == set(range(24))
    return Calendar(
        expression=" ".join([minute, "*" if elapsed else hour, *date]),
        zone=ZoneInfo(zone),
        elapsed=elapsed,
        words=words or simulated.explain(),
        period=min(later - earlier for earlier, later in pairwise(first)),
    )


def _spelled(problem: CronSimError) -> str:
    """`Bad day-of-month` says which field; the sentence says what of it."""
    return str(problem).replace("Bad ", "there is no such ").lower()
