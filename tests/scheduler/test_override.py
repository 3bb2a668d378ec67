"""Overrides: run now and another cadence, each with who, when, why."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from audit.models import Change
from scheduler import sql
from scheduler.exceptions import HandlerPaused, InvalidCadence
from scheduler.models import Schedule
from scheduler.override import change_cadence, run_now
from tests import databases
from tests.scheduler.timetable_for_tests import row
from workqueue import live, pauses
from workqueue.exceptions import UnknownHandler
from workqueue.models import Pause
from workqueue.registry import Handler

ANN = {"who": "ann", "origin": "command", "why": "CHG-1"}


@pytest.fixture(autouse=True)
def rows(timetable: Callable[..., tuple[Handler, ...]], transactional_db: None) -> None:
    timetable(
        row("plain", cadence="1h", title="Plain Handler"), row("probed", cadence="2s")
    )


def changes() -> list[tuple[Any, ...]]:
    return list(
        Change.objects.order_by("id").values_list(
            "who", "subject", "verb", "old", "new", "why"
        )
    )


def test_run_now_is_a_request_in_a_row_and_a_change() -> None:
    assert run_now("plain", **ANN)
    schedule = Schedule.objects.get()
    assert (schedule.key, schedule.run_requested_by, schedule.run_requested_why) == (
        "plain",
        "ann",
        "CHG-1",
    )
    assert schedule.run_requested_at is not None
    assert changes() == [
        ("ann", "handler:plain", "run now", None, {"run": "asked for"}, "CHG-1")
    ]


def test_a_second_request_before_the_first_is_ticked_changes_nothing() -> None:
    assert run_now("plain", **ANN)
    before = Schedule.objects.get().run_requested_at
    assert not run_now("plain", who="bob", origin="admin", why="me too")
    assert Schedule.objects.get().run_requested_at == before
    assert len(changes()) == 1


def test_run_now_asks_first_where_it_is_paused() -> None:
    pauses.pause(
        scope=Pause.Scope.HANDLER,
        handler="plain",
        reason="upgrade",
        who="bob",
        origin="admin",
    )
    with pytest.raises(
        HandlerPaused,
        match="Plain Handler is paused until somebody ends the pause, by bob: “upgrade”",
    ):
        run_now("plain", **ANN)
    assert not Schedule.objects.exists()
    assert run_now("plain", **ANN, confirmed=True)


def test_a_tenants_pause_does_not_pause_the_row() -> None:
    from tests import factories

    pauses.pause(
        scope=Pause.Scope.TENANT,
        tenant=factories.tenant("acme"),
        reason="r",
        who="b",
        origin="admin",
    )
    assert run_now("plain", **ANN)


def test_an_unknown_row_cannot_be_run_or_changed() -> None:
    with pytest.raises(UnknownHandler):
        run_now("retired", **ANN)
    with pytest.raises(UnknownHandler):
        change_cadence("retired", cadence="1h", **ANN)


def test_a_changed_cadence_is_kept_with_who_when_why_and_the_old_one() -> None:
    assert change_cadence("plain", cadence=" daily  23:00 ", **ANN)
    schedule = Schedule.objects.get()
    assert (schedule.cadence, schedule.cadence_who, schedule.cadence_why) == (
        "daily 23:00",
        "ann",
        "CHG-1",
    )
    assert schedule.cadence_at is not None
    assert change_cadence("plain", cadence="5m", **ANN)
    assert change_cadence("plain", cadence="", **ANN)
    assert [(old, new) for _, _, _, old, new, _ in changes()] == [
        ("1h", "daily 23:00"),
        ("daily 23:00", "5m"),
        ("5m", "1h"),
    ]


@pytest.mark.parametrize("same", ["", "1h", " 1h "])
def test_the_cadence_that_it_has_anyway_is_no_change(same: str) -> None:
    assert not change_cadence("plain", cadence=same, **ANN)
    assert changes() == []


@pytest.mark.parametrize(
    "bad", ["0 0 31 2 *", "61 * * * *", "x" * 300, "* * * * * *", "whenever"]
)
def test_a_bad_cadence_is_refused_and_nothing_is_stored(bad: str) -> None:
    with pytest.raises(InvalidCadence):
        change_cadence("plain", cadence=bad, **ANN)
    assert not Schedule.objects.exists()


def test_only_a_row_that_knows_who_has_work_may_tick_faster_than_every_ten_seconds() -> (
    None
):
    with pytest.raises(InvalidCadence, match="Plain Handler cannot say who has work"):
        change_cadence("plain", cadence="5s", **ANN)
    assert change_cadence("probed", cadence="5s", **ANN)


@pytest.mark.postgresql
def test_the_servers_are_woken_when_it_commits() -> None:
    with psycopg.connect(databases.url(), autocommit=True) as session:
        session.execute(f"LISTEN {sql.CHANNEL}")
        for act in (
            lambda: run_now("plain", **ANN),
            lambda: change_cadence("plain", cadence="5m", **ANN),
        ):
            act()
            assert next(session.notifies(timeout=5, stop_after=1), None) is not None


def test_settings_that_cannot_be_read_do_not_forbid_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "refresh", lambda: live.Live())
    assert run_now("plain", **ANN)
