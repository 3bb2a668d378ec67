"""What the list of ticks can be asked."""

import pytest
from django.http import QueryDict

from audit import clock
from scheduler.filters import TROUBLE, TickFilters
from scheduler.models import Tick
from tests.scheduler.timetable_for_tests import row

pytestmark = pytest.mark.django_db


def tick(handler: str = "a", **values: object) -> Tick:
    now = clock.now()
    return Tick.objects.create(
        **{
            "handler": handler,
            "trigger": "slot",
            "slot": now,
            "at": now,
            "term": 1,
            **values,
        }
    )


def found(query: str) -> set[str]:
    return {
        one.handler
        for one in TickFilters(QueryDict(query), queryset=Tick.objects.all()).qs
    }


def test_a_handler_is_found_by_its_key_and_by_its_title(timetable):
    timetable(row("plain", title="Notification Handler"), row("other"))
    tick("plain")
    tick("other")
    assert found("text=notification") == {"plain"}
    assert found("text=pla") == {"plain"}
    assert found("") == {"plain", "other"}


@pytest.mark.parametrize("kind", TROUBLE)
def test_each_kind_of_trouble_can_be_asked_for(kind, timetable):
    tick("fine", enqueued=3)
    tick("bad", blocked=1, held=1, missed=1, still_running=1, paused=1)
    assert found(f"trouble={kind}") == {"bad"}


@pytest.mark.parametrize(
    "query",
    [
        "term=-1",
        "term=99999999999999999999",
        "trigger=never",
        "since=never",
        "text=%00",
        "trouble=x",
    ],
)
def test_a_value_that_cannot_be_is_refused_and_breaks_nothing(query, timetable):
    tick("a")
    assert found(query) in ({"a"}, set())
