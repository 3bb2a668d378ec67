"""back_off: how long a message waits after its n-th failed attempt."""

import random
from datetime import timedelta

BASE = timedelta(seconds=30)
CAP = timedelta(hours=6)
JITTER = 0.2  # either way, so that what failed together does not come back together

# Of the process. Tests seed it; nobody needs it to be secret.
chance = random.Random()  # noqa: S311


def delay(attempts: int) -> timedelta:
    """30 s, 60 s, 120 s ... 6 h, each up to a fifth more or less. `attempts` counts from 1."""
    doublings = min(max(attempts, 1) - 1, 32)  # beyond the cap long before
    wait: timedelta = min(CAP, BASE * 2**doublings)
    return wait * chance.uniform(1 - JITTER, 1 + JITTER)
