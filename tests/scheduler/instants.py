"""Instants, and what a ticker that never stops would tick between two of them."""

from datetime import UTC, datetime

from scheduler.cadence import Cadence

VIENNA = "Europe/Vienna"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def walk(row: Cadence, *, start: datetime, end: datetime) -> list[datetime]:
    """What a ticker that never stops would tick."""
    slots = []
    moment = start
    while (found := row.next_after(moment)) and found <= end:
        slots.append(found)
        moment = found
    return slots
