"""How long a message waits after a failed attempt."""

from datetime import timedelta
from typing import Any

import pytest

from scheduler.handlers.notifications import back_off

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(0, 30), (1, 30), (2, 60), (3, 120), (8, 3_840), (11, 21_600), (10**6, 21_600)],
)
def test_it_doubles_up_to_six_hours_with_a_fifth_of_jitter(
    attempts: int, seconds: float
) -> None:
    waits = [back_off.delay(attempts).total_seconds() for _ in range(500)]
    assert 0.8 * seconds <= min(waits) < 0.85 * seconds
    assert 1.15 * seconds < max(waits) <= 1.2 * seconds


@pytest.mark.parametrize(
    ("policy", "attempts", "left"),
    [
        (back_off.never, 1, None),
        (back_off.counted, 7, 7),
        (back_off.counted, 8, None),
        (back_off.outage, 1, 1),
        (back_off.outage, 5, 5),
        (back_off.outage, 6, 5),
        (back_off.outage, 8, 7),
        (back_off.once_more, 1, 7),
        (back_off.once_more, 7, 7),
        (back_off.once_more, 8, None),
    ],
)
def test_what_a_failed_attempt_costs(
    policy: Any, attempts: int, left: int | None
) -> None:
    found = policy(attempts)
    assert (found and found.attempts) == left


@pytest.mark.parametrize("attempts", [5, 6, 8, 1_000])
def test_an_outage_is_looked_at_every_ten_minutes_however_long_it_lasts(
    attempts: int,
) -> None:
    assert back_off.outage(attempts).delay < timedelta(minutes=10)


def test_a_seed_gives_the_same_waits() -> None:
    back_off.chance.seed(7)
    first = [back_off.delay(1) for _ in range(3)]
    back_off.chance.seed(7)
    assert [back_off.delay(1) for _ in range(3)] == first
