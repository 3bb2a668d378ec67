"""Cells of the ledger's lists: what they say, and that nothing in them is markup."""

from datetime import timedelta

import pytest

from audit import clock, sorting
from audit.models import Change, Run
from audit.rows import LateRow
from audit.tables import ChangeTable, RunLine, RunTable, bar, difference, result, scaled
from tests.screens import HOSTILE, LIVE


@pytest.mark.parametrize(
    ("span", "px"),
    [
        (timedelta(), 0),
        (timedelta(milliseconds=10), 0),
        (timedelta(milliseconds=214), 15),
        (timedelta(hours=1), 64),
        (timedelta(days=3), 64),
    ],
)
def test_a_run_time_stands_on_a_logarithm_from_10_ms_to_1_h(span: timedelta, px: int):
    assert scaled(span) == px


def test_the_bar_has_no_style_and_a_tick_at_the_median():
    drawn = bar(
        timedelta(seconds=5), outcome="failed", median=timedelta(milliseconds=200)
    )
    assert "style" not in drawn
    assert 'class="f-fail"' in drawn
    assert drawn.count("<rect") == 4
    assert bar(timedelta(0), outcome="succeeded", median=None).count("<rect") == 2


def test_of_two_objects_only_what_differs_is_shown():
    shown = difference(
        {"a": 1, "b": True, "c": ""}, {"a": 1, "b": False, "d": "x", "c": None}
    )
    assert "<code>a</code>" not in shown
    assert "<del>on</del> <ins>off</ins>" in shown
    assert "<code>c</code>" not in shown
    assert "<ins>x</ins>" in shown


def test_an_error_is_whole_and_monospace_and_a_cancellation_is_a_sentence():
    failed = Run(
        outcome="failed", error="550 5.1.1 no such user", summary="sent 2 of 3"
    )
    assert (
        result(failed) == 'sent 2 of 3: <span class="err">550 5.1.1 no such user</span>'
    )
    assert (
        result(Run(outcome="cancelled", error="cancelled by anna: “x”"))
        == "cancelled by anna: “x”"
    )
    assert result(Run(outcome="succeeded")) == "no change"


@pytest.mark.django_db
def test_hostile_text_stays_text_in_every_cell(rf):
    now = clock.now()
    run = Run(
        id=clock.uuid7(), handler=HOSTILE, tenant=HOSTILE, node=HOSTILE, outcome="failed", error=HOSTILE,
        summary=HOSTILE, enqueued_at=now, claimed_at=now, started_at=now, finished_at=now, attempt=1,
    )  # fmt: skip
    late = LateRow(
        claim_id=run.id, arrived_at=now, node_id=None, node=HOSTILE, tenant_id=1, tenant=HOSTILE, handler=HOSTILE,
        started_at=now, finished_at=now, outcome=HOSTILE, seen=0, changed=0, skipped=0, failed=0, summary=HOSTILE,
        error=HOSTILE, transcript=HOSTILE,
    )  # fmt: skip
    line = RunLine(run=run, title=HOSTILE, median=None, late=late, later=None)
    change = Change(
        at=now,
        who=HOSTILE,
        origin=HOSTILE,
        subject=HOSTILE,
        verb=HOSTILE,
        old={HOSTILE: HOSTILE},
        new=HOSTILE,
        why=HOSTILE,
    )
    request = rf.get("/")
    runs = RunTable([line], now=now, sort=sorting.of(""), address=lambda **_: "?")
    html = runs.as_html(request) + ChangeTable([change], now=now).as_html(request)
    assert not [live for live in LIVE if live in html]
    assert "&lt;script&gt;" in html


def test_a_moment_that_json_kept_is_told_like_other_times():
    shown = difference(None, {"until": "2026-11-30T05:38:02.457285+00:00"})
    assert "<ins>2026-11-30 05:38:02 UTC</ins>" in shown
    assert "2026-02-31T05:38:02Z" in difference(None, {"until": "2026-02-31T05:38:02Z"})
