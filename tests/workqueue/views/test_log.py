"""A page's log: what it asks for, whoever's lines they are, and before there is a claim."""

import pytest
from django.test import RequestFactory

from audit import window
from workqueue.views import log

WAITS = log.Log(claim_id=None, place="/here/", live=True, began=False)


def asked(query: str) -> window.Wanted:
    return log.wanted(RequestFactory().get(f"/?{query}"))


def test_what_nobody_has_claimed_has_no_lines_and_is_followed():
    shown = WAITS.shown(window.ALL, selected=None)
    assert shown["window"] is window.EMPTY
    assert shown["following"] is True
    assert WAITS.summed() == WAITS.newest() == window.NOTHING


def test_a_follower_of_what_has_no_claim_is_answered_with_the_parts_that_move():
    request = RequestFactory().get("/?follow=1&after=0")
    told = log.answer(
        request, WAITS, news="workqueue/follow.html", parts=lambda: {"told": 1}
    )
    assert told.status_code == 200
    assert b"/here/lines/?follow=1&amp;after=0" in told.content


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", window.ALL),
        ("text=a&level=error", window.Wanted(text="a", level=40)),
        ("level=nonsense", window.ALL),
        (f"text={'x' * 2000}", window.Wanted(text="x" * 1000)),
    ],
)
def test_which_lines_are_asked_for(query: str, wanted: window.Wanted):
    assert asked(query) == wanted


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("", None), ("-7", None), ("1" * 10, None), ("\u0661", None)],
)
def test_a_number_of_an_address_is_one_or_none(text: str, value: int | None):
    assert log.number(RequestFactory().get("/", {"line": text}), "line") == value
