"""Drawings: SVG that the content security policy lets through, with a sentence each."""

import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta

import pytest

from audit import drawings

pytestmark = pytest.mark.once

NOW = datetime(2026, 11, 29, 14, 32, 10, tzinfo=UTC)
DRAWN = {
    "slots": drawings.slots(busy=3, usable=8, asked=12),
    "many slots": drawings.slots(busy=300, usable=400, asked=500),
    "last runs": drawings.last_runs(
        [("succeeded", timedelta(seconds=1)), ("failed", None)]
    ),
    "by hour": drawings.by_hour([0, 1, 1000], outcome="failed"),
    "per minute": drawings.per_minute([0, 306, 12], now=NOW),
}


def bars(drawn: str, kind: str) -> int:
    return drawn.count(f'class="{kind}"')


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_a_drawing_is_well_formed_says_what_it_shows_and_has_no_style(drawn):
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert not any("style" in element.attrib for element in root.iter())


def test_slots_that_were_asked_for_and_not_given_are_drawn_as_such():
    drawn = drawings.slots(busy=3, usable=8, asked=12)
    assert (bars(drawn, "f-accent"), bars(drawn, "f-track"), bars(drawn, "f-warn")) == (
        3,
        5,
        4,
    )
    assert 'aria-label="3 of 8 busy, 12 asked for"' in drawn


def test_more_busy_than_usable_after_a_reduction_is_still_drawn():
    drawn = drawings.slots(busy=6, usable=4, asked=4)
    assert bars(drawn, "f-accent") == 6


def test_the_last_runs_are_fifty_at_most_and_count_their_trouble():
    runs = [("succeeded", timedelta(seconds=1))] * 70 + [
        ("failed", timedelta(hours=9)),
        ("partial", None),
    ]
    drawn = drawings.last_runs(runs)
    assert bars(drawn, "f-bar") == 48
    assert "1 failed, 1 partial" in drawn


def test_an_hour_with_a_single_failure_can_be_seen_beside_one_with_a_thousand():
    assert 'height="2.0"' in drawings.by_hour([0, 1, 1000], outcome="failed")


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (1, 1), (306, 400), (20_001, 40_000)]
)
def test_the_scale_ends_at_a_round_number(most, top):
    assert f"{top:,} a minute" in drawings.per_minute([most, 0], now=NOW)
