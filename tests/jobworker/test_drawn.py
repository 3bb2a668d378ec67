"""Drawings of a job: placed by attributes, with a sentence for those who do not see them."""

from datetime import timedelta

import pytest

from audit import clock
from jobworker import drawn

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("percent", "width"), [(0, 0), (50, 36), (100, 72), (300, 72), (-5, 0)]
)
def test_progress_fills_its_part_of_the_bar_and_no_more(percent: int, width: int):
    found = drawn.progress(percent)
    assert f'class="f-accent" x="0.0" y="1.0" width="{width:.1f}"' in found
    assert f"{percent}\u00a0%" in found


def test_the_track_says_how_long_it_ran_of_what_it_may():
    found = drawn.track(
        started=clock.now(),
        ran=26 * MINUTE,
        limit=120 * MINUTE,
        usual=31 * MINUTE,
        silent=12 * MINUTE,
    ).replace("\u00a0", " ")
    assert "Ran 26 min of at most 2 h; silent for the last 12 min" in found
    assert 'width="21.7%"' in found
    assert 'x="11.7%" y="14" width="10.0%"' in found
    assert "usual end: 31 min" in found
    assert "style" not in found


def test_what_ran_beyond_its_limit_stays_inside_the_picture():
    found = drawn.track(
        started=clock.now(),
        ran=200 * MINUTE,
        limit=120 * MINUTE,
        usual=None,
        silent=300 * MINUTE,
    )
    assert 'width="100.0%"' in found
    assert "usual end" not in found


def test_a_usual_end_near_an_edge_is_a_line_without_words():
    for usual in (2 * MINUTE, 118 * MINUTE):
        found = drawn.track(
            started=clock.now(),
            ran=MINUTE,
            limit=120 * MINUTE,
            usual=usual,
            silent=None,
        )
        assert "usual end" not in found
        assert "l-rule" in found
