"""The list of ticks: what was not enqueued, and why, in words."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import Tick
from scheduler.tables import TickTable

NOW = datetime(2026, 11, 29, 14, 32, 10, tzinfo=UTC)


def cells(**values: object) -> dict[str, str]:
    defaults = {
        "pk": 7,
        "handler": "gone",
        "trigger": "slot",
        "slot": NOW,
        "at": NOW,
        "term": 41,
    }
    tick = Tick(**{**defaults, **values})
    (row,) = TickTable([tick], now=NOW).rows
    return {
        column.name: str(cell).replace("\u00a0", " ") for column, cell in row.items()
    }


@pytest.mark.once
def test_everything_that_was_left_out_is_told_with_its_reason():
    said = cells(
        still_running=2,
        held=1,
        blocked=10,
        blocked_tenants=[4, 5, 6],
        not_eligible={"licence expired": 4},
        missed=35,
        paused_slots=1,
        merged=6,
    )["left_out"]
    for part in (
        "2 still running",
        "1 held",
        "3 blocked by somebody\u2019s open transaction",
        "7 not reached in time, the database was slow",
        "4 not eligible: licence expired",
        "35 slots missed, this one stands for them",
        "1 slot in a pause",
        "6 idle ticks in this row",
    ):
        assert part in said


@pytest.mark.once
def test_a_tick_that_left_nobody_out_says_so_with_a_dash():
    assert cells(enqueued=24)["left_out"] == "\u2013"


@pytest.mark.once
def test_a_late_tick_is_a_warning_and_an_early_one_is_not():
    assert "is-warn" in cells(lateness_ms=12_000)["late"]
    assert cells(lateness_ms=278)["late"] == "278 ms"


def test_the_count_of_items_leads_to_their_runs():
    assert 'sort=oldest">9,800</a>' in cells(enqueued=9_800)["enqueued"]
    assert cells(enqueued=0)["enqueued"] == "0"


@pytest.mark.once
@pytest.mark.parametrize("spoilt", [[], "text", None, {"a": "many"}, {"a": None}])
def test_reasons_that_somebody_spoilt_by_sql_break_nothing(spoilt):
    assert cells(not_eligible=spoilt)["left_out"] == "\u2013"


@pytest.mark.once
def test_hostile_text_is_shown_as_text():
    said = cells(
        handler="<script>",
        who="<b>",
        why="\u202e" + "x" * 1_000_000,
        not_eligible={"<i>": 1},
    )
    assert "<script>" not in said["handler"]
    assert "<b>" not in said["trigger"]
    assert len(said["trigger"]) < 2000
    assert "<i>" not in said["left_out"]


@pytest.mark.once
def test_a_run_now_says_who_asked_and_why():
    said = cells(
        trigger="operator",
        who="op",
        why="after the new framework",
        slot=NOW - timedelta(days=1),
    )
    assert "by op: \u201cafter the new framework\u201d" in said["trigger"]
    assert "yesterday 14:32:10" in said["slot"]
