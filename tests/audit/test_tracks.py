"""The drawing of an item's attempts."""

from datetime import timedelta
from xml.etree import ElementTree

import pytest

from audit.rows import LateRow
from audit.tracks import WIDE, tracks
from tests.audit.test_timeline import after, attempt
from tests.audit.test_views import HOSTILE

pytestmark = pytest.mark.once


def late(of, at):
    return LateRow(
        claim_id=of.claim_id, arrived_at=at, node_id=None, node=HOSTILE, tenant_id=1, tenant="acme", handler="a.b",
        started_at=None, finished_at=at, outcome="succeeded", seen=0, changed=0, skipped=0, failed=0, summary=HOSTILE,
        error="", transcript="",
    )  # fmt: skip


def test_attempts_stand_under_each_other_and_a_late_result_has_room_for_its_words():
    first = attempt(state="abandoned", finished_at=after(281))
    second = attempt(
        state="executing", number=2, started_at=after(282), finished_at=None
    )
    drawn = tracks(
        [first, second], {first.claim_id: late(first, after(372))}, now=after(730)
    )
    picture = ElementTree.fromstring(drawn)
    assert picture.get("role") == "img"
    assert (
        "Attempt 1 from 14:20:01 to 14:24:41, abandoned, its late result came at 14:26:12"
        in picture.get("aria-label")
    )
    assert "style" not in drawn
    [words] = [
        text for text in picture.iter("text") if "late result" in (text.text or "")
    ]
    assert float(words.get("x")) < WIDE - 170
    assert [rect.get("class") for rect in picture.iter("rect")] == [
        "f-track",
        "f-fail",
        "f-track",
        "f-accent",
    ]


def test_an_attempt_of_no_length_is_still_seen():
    one = attempt(started_at=after(1), finished_at=after(1))
    two = attempt(number=2, started_at=after(1), finished_at=after(1))
    picture = ElementTree.fromstring(tracks([one, two], {}, now=after(2)))
    assert all(float(rect.get("width")) >= 2 for rect in picture.iter("rect"))


def test_what_never_began_is_not_drawn():
    never = attempt(started_at=None, number=0)
    picture = ElementTree.fromstring(
        tracks([never, attempt()], {}, now=after(9) + timedelta(1))
    )
    assert picture.get("height") == "42"
