"""Wait on an event with a deadline, never for a time."""

import time
from collections.abc import Callable


def wait_until[T](
    condition: Callable[[], T],
    *,
    within: float = 10,  # seconds
    what: str = "the condition",
    every: float = 0.02,  # seconds
) -> T:
    """The first true value of `condition`. AssertionError when the time is over."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {within} s")
        time.sleep(every)
    return value
