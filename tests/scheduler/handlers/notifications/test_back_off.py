"""How long a message waits after a failed attempt."""

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


def test_a_seed_gives_the_same_waits() -> None:
    back_off.chance.seed(7)
    first = [back_off.delay(1) for _ in range(3)]
    back_off.chance.seed(7)
    assert [back_off.delay(1) for _ in range(3)] == first
