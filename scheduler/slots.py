"""slots: which slot of a row is due, and which went by. Pure: no database, no clock.

Called by the ticker for every row at every pass. The misfire rule decides what becomes
of slots that nobody ticked: the newest once (`latest`), none (`skip`), or the newest
few one after the other (`all`). Slots that fell into a pause are counted apart, and
the end of a pause is a new beginning: nothing before it is missed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.cadence import Cadence, missed
from workqueue.registry import Misfire

# A slot that is ticked later than this was missed. More than a take-over takes.
GRACE = timedelta(seconds=60)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A pause: from its beginning up to, and without, its end."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A slot to tick now."""

    slot: datetime
    missed: int = 0  # slots that it stands for besides itself
    paused: int = 0  # slots since the last one that fell into a pause
    catching_up: bool = (
        False  # newer slots are due as well: tick them when this one is done
    )


def due(
    cadence: Cadence,
    *,
    misfire: Misfire,
    since: datetime,
    now: datetime,
    pauses: Sequence[Span] = (),
) -> Due | None:
    """The slot to tick of those after `since` up to and including `now`.

    `since`: the newest slot that was ticked, or that may not be ticked any more.
    `pauses`: those that are over; a row that is paused now is not asked.
    """
    over = merged(span for span in pauses if span.end > since and span.start <= now)
    # A slot at the very end of a pause is no longer in it.
    start = max(since, over[-1].end - _INSTANT) if over else since
    kept = misfire.at_most if misfire.rule == "all" else 1
    found = missed(cadence, since=start, now=now, at_most=max(1, kept))
    if not found.newest:
        return None
    slot = found.newest[0]
    if misfire.rule == "skip" and now - slot > GRACE:
        return None  # counted on the next one's tick
    paused = sum(_count(cadence, span, since=since, until=slot) for span in over)
    count = cadence.count(since=since, now=slot)
    return Due(
        slot=slot,
        missed=max(0, count - paused - 1),
        paused=paused,
        catching_up=len(found.newest) > 1,
    )


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same spans in order, with those joined that touch."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda one: one.start):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(start=joined[-1].start, end=max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _count(cadence: Cadence, span: Span, *, since: datetime, until: datetime) -> int:
    first = max(since, span.start - _INSTANT)
    last = min(until, span.end - _INSTANT)
    return cadence.count(since=first, now=last) if last > first else 0
