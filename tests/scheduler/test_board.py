"""The Timetable's rows: a fixed number of statements, and rules in sentences."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler import board
from scheduler.models import Schedule
from tests import factories
from tests.audit.conftest import recorded
from tests.scheduler.timetable_for_tests import row
from workqueue import live, pauses
from workqueue.registry import ACTIVE, DAILY_RETRY, LICENSED, Misfire

pytestmark = pytest.mark.django_db

NOW = datetime(2027, 3, 20, 14, 32, 10, tzinfo=UTC)


def line(key: str, now: datetime = NOW) -> board.Line:
    found = board.line(key, now=now)
    assert found is not None
    return found


def opened(key: str, now: datetime = NOW) -> board.Opened:
    return board.opened(line(key, now), now=now)


def test_the_page_costs_the_same_for_two_handlers_and_for_fifty(
    timetable, django_assert_num_queries
):
    for number in (2, 50):
        rows = timetable(*(row(f"h{place}") for place in range(number)))
        for one in rows:
            recorded(handler=one.key)
        live.refresh()
        with django_assert_num_queries(3):  # schedules, newest runs, what executes
            assert len(board.lines(NOW)) == number


def test_a_changed_cadence_is_shown_beside_the_default(timetable):
    timetable(row("plain", cadence="15m"))
    Schedule.objects.create(key="plain", since=NOW, cadence="20m", cadence_at=NOW)
    found = line("plain")
    assert found.words.replace("\u00a0", " ") == "Every 20 min"
    assert found.default.replace("\u00a0", " ") == "every 15 min"
    assert found.next == NOW.replace(minute=40, second=0)


def test_a_cadence_that_somebody_spoilt_by_sql_is_shown_as_the_problem(timetable):
    timetable(row("plain"))
    Schedule.objects.create(key="plain", since=NOW, cadence="every now and then")
    found = line("plain")
    assert "is not a cadence" in found.problem
    assert found.next is None
    assert not found.on_the_wall
    assert opened("plain").slots == ()


def test_a_row_without_a_cadence_is_on_demand(timetable):
    timetable(row("plain", cadence=None))
    assert line("plain").words == "On demand"
    assert opened("plain").fails == "it is not retried"


def test_a_pause_of_the_handler_and_of_everything_is_on_its_row(timetable):
    timetable(row("plain"), row("other"))
    pauses.pause(
        scope="handler", handler="plain", reason="upgrade", who="op", origin="admin"
    )
    live.refresh()
    paused = {one.handler.key: one.pause is not None for one in board.lines(NOW)}
    assert paused == {"plain": True, "other": False}


def test_the_next_ten_slots_say_where_the_clocks_change(timetable, settings: Any):
    settings.TIME_ZONE = "Europe/Berlin"
    timetable(row("plain", cadence="daily 23:00"))
    with timezone.override(UTC):
        slots = opened("plain").slots
    assert len(slots) == 10
    told = [(slot.server, slot.yours, slot.changed) for slot in slots if slot.changed]
    assert told == [
        ("Sun 28 Mar 2027, 23:00", "28 Mar 21:00", "summer time since 28 Mar")
    ]


def test_the_next_ten_slots_say_where_the_readers_own_clocks_change(
    timetable, settings: Any
):
    settings.TIME_ZONE = "UTC"
    timetable(row("plain", cadence="daily 23:00"))
    with timezone.override("Europe/London"):
        slots = opened("plain").slots
    told = [(slot.server, slot.yours, slot.changed) for slot in slots if slot.changed]
    assert told == [
        ("Sun 28 Mar 2027, 23:00", "29 Mar 00:00", "yours: summer time since 28 Mar")
    ]


def test_the_rules_of_a_row_are_sentences(timetable):
    timetable(
        row(
            "plain",
            cadence="daily 23:00",
            retry=DAILY_RETRY,
            abandon="fail",
            eligible=(ACTIVE, LICENSED),
        ),
        row("skip", misfire=Misfire(rule="skip")),
        row("all", misfire=Misfire(rule="all", at_most=5), scope="platform"),
    )
    factories.tenant("acme", licence_expires_at=NOW - timedelta(days=1))
    factories.tenant("granite")
    found = opened("plain")
    assert (
        found.runs_for == "1 of 2 tenants: those not inactive and not licence expired"
    )
    assert found.missed == "the newest missed slot runs once"
    assert (
        found.fails.replace("\u00a0", " ")
        == "3 retries, the first after 1 min, at most 1 h apart"
    )
    assert found.abandoned == "is failed; it starts at most once"
    assert opened("skip").missed == "missed slots are left out"
    assert opened("all").missed == "the newest 5 missed slots run, one after the other"
    assert opened("all").runs_for == "the platform, once"


def test_a_row_is_found_by_its_title_and_its_key(timetable):
    timetable(row("plain", title="Notification Handler"))
    one = line("plain")
    assert board.matches(one, text="NOTIF", show="")
    assert board.matches(one, text="plain", show="")
    assert not board.matches(one, text="archive", show="")
    assert not board.matches(one, text="", show="paused")
    assert board.matches(one, text="", show="no such view")


def test_a_key_that_the_timetable_does_not_have_is_no_row(timetable):
    assert board.line("gone", now=NOW) is None
