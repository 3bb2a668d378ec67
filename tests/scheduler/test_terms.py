"""Who was master when: from the ledger's events, with the time nobody was."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from audit.models import NodeEvent
from scheduler import terms
from scheduler.servers import Mastership
from tests import factories

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 29, 14, 32, 10, tzinfo=UTC)
IDS = {"app-1, 21": uuid4(), "app-2, 21": uuid4()}


def event(node: str, type: str, *, ago: timedelta, term: int | None = None) -> None:
    NodeEvent.objects.create(
        node_id=IDS.setdefault(node, uuid4()),
        node=node,
        kind="server",
        type=type,
        term=term,
        at=NOW - ago,
    )


def master(
    term: int, *, held: bool = True, expires: timedelta = timedelta(seconds=20)
) -> Mastership:
    return Mastership(
        holder=uuid4(),
        node="app-1, 21",
        term=term,
        since=NOW,
        renewed_at=NOW,
        expires_at=NOW + expires,
        held=held,
    )


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def test_terms_follow_each_other_and_the_time_between_is_counted():
    event("app-2, 21", "elected", ago=hours(30), term=40)
    event("app-2, 21", "deposed", ago=hours(5) + timedelta(seconds=26), term=40)
    event("app-1, 21", "elected", ago=hours(5), term=41)
    found = terms.history(master(41), span=terms.SPANS[0], now=NOW)
    assert [(one.term, one.holds) for one in found.terms] == [(40, False), (41, True)]
    assert found.terms[0].since == NOW - hours(24)
    assert [gap.length for gap in found.gaps] == [timedelta(seconds=26)]
    assert found.sentence.replace("\u00a0", " ") == "2 terms, 26 s without one"
    assert "no master for 26\u00a0s" in found.drawn


def test_a_master_that_died_without_a_word_held_its_term_until_its_last_beat():
    event("app-2, 21", "elected", ago=hours(9), term=40)
    event("app-1, 21", "elected", ago=hours(5), term=41)
    event("app-2, 21", "silent", ago=hours(5) - timedelta(seconds=9))
    last = NOW - hours(5) - timedelta(seconds=27)
    factories.node("server", id=IDS["app-2, 21"], heartbeat_at=last)
    found = terms.history(master(41), span=terms.SPANS[0], now=NOW)
    assert [gap.length for gap in found.gaps] == [timedelta(seconds=27)]


def test_a_term_whose_master_died_without_a_word_ends_with_its_lease():
    event("app-1, 21", "elected", ago=hours(2), term=7)
    gone = master(7, held=False, expires=-timedelta(minutes=3))
    found = terms.history(gone, span=terms.SPANS[0], now=NOW)
    assert found.terms[0].until == NOW - timedelta(minutes=3)
    assert [gap.length for gap in found.gaps] == [timedelta(minutes=3)]


def test_without_an_event_there_is_nothing_to_draw():
    found = terms.history(master(0, held=False), span=terms.SPANS[0], now=NOW)
    assert found.terms == ()
    assert found.drawn == ""


def test_a_hundred_terms_of_a_hundred_machines_are_drawn_within_bounds():
    for number in range(100):
        event(
            f"machine-{number}.a-very-long-name.example.org, 1",
            "elected",
            ago=timedelta(minutes=100 - number),
            term=number + 1,
        )
    found = terms.history(master(100), span=terms.SPANS[0], now=NOW)
    assert len(found.terms) == 100
    assert found.drawn.count('class="f-track"') == terms.MOST_ROWS


def test_a_hostile_name_is_drawn_as_text():
    event("<script>alert(1)</script>\u202e, 1", "elected", ago=hours(1), term=1)
    drawn = terms.history(master(1), span=terms.SPANS[0], now=NOW).drawn
    assert "<script" not in drawn
    assert "\u202e" not in drawn


def test_an_unknown_span_is_a_day():
    assert terms.span("9y").key == "24h"
    assert terms.span("30d").length == timedelta(days=30)
