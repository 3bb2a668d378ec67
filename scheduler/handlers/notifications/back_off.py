"""back_off: what an attempt that failed costs a message, and when the next one is due.

Each verb takes the attempts so far, the failed one included, and says what becomes of
them; None: there is no next one.
"""

import random
from datetime import timedelta
from typing import NamedTuple

from scheduler.handlers.notifications.models import MAX_ATTEMPTS

BASE = timedelta(seconds=30)
CAP = timedelta(hours=6)
JITTER = 0.2  # either way, so that what failed together does not come back together
# Attempts that an outage uses up at most: the wait stays at 8 min however long it lasts,
# and three are left for what the other side says when it is back.
MOST_OF_OUTAGE = 5
ONCE_MORE = timedelta(hours=1)

# Of the process. Tests seed it; nobody needs it to be secret.
chance = random.Random()  # noqa: S311


class Next(NamedTuple):
    """The next attempt."""

    attempts: int  # that count so far
    delay: timedelta


def never(attempts: int) -> None:
    """The other side will never take it."""


def counted(attempts: int) -> Next | None:
    """Not now: eight attempts in all."""
    return None if attempts >= MAX_ATTEMPTS else Next(attempts, delay(attempts))


def outage(attempts: int) -> Next:
    """Nobody there, or nobody gets through. That ends; the message waits as long as it takes."""
    spent = attempts if attempts <= MOST_OF_OUTAGE else attempts - 1
    return Next(spent, delay(min(spent, MOST_OF_OUTAGE)))


def once_more(attempts: int) -> Next | None:
    """Perhaps taken. To leave it may lose the message, to go on would repeat it: one is left."""
    return None if attempts >= MAX_ATTEMPTS else Next(MAX_ATTEMPTS - 1, ONCE_MORE)


def delay(attempts: int) -> timedelta:
    """30 s, 60 s, 120 s ... 6 h, each up to a fifth more or less. `attempts` counts from 1."""
    doublings = min(max(attempts, 1) - 1, 32)  # beyond the cap long before
    wait: timedelta = min(CAP, BASE * 2**doublings)
    return wait * chance.uniform(1 - JITTER, 1 + JITTER)
