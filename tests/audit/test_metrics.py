"""What the Metrics page reads is what the runs were, whoever asks."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from audit import keyset, metrics, sum_up
from audit.metrics import RANGES, percentile, read
from tests.audit.test_sum_up import always, ended

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MS = timedelta(milliseconds=1)


@pytest.fixture
def runs(db):
    """An hour and a half of runs: one a minute of tenant 7, every third of them failed; some of tenant 8."""
    for minute in range(90):
        at = NOON + timedelta(minutes=minute, seconds=30)
        ended(at, tenant_id=7, outcome="failed" if minute % 3 == 0 else "succeeded")
        if minute % 10 == 0:
            ended(at, tenant_id=8, handler="tests.other", ran=3000 * MS)
    sum_up.sum_up(NOON + timedelta(minutes=90, seconds=20), goes_on=always)


def asked(name, *, tenants=None, **more):
    return read(RANGES[name], tenants=tenants, now=NOON + timedelta(hours=2), **more)


@pytest.mark.parametrize("name", ["6h", "24h", "7d", "30d"])
@pytest.mark.parametrize(
    ("tenants", "runs_of_all"),
    [(None, 99), ({7}, 90), ({8}, 9), ({7, 8}, 99), (set(), 0)],
)
def test_every_range_counts_every_run_once_for_every_reader(
    runs, name, tenants, runs_of_all
):
    found = asked(name, tenants=None if tenants is None else frozenset(tenants))
    assert found.whole.runs == runs_of_all
    assert sum(step.runs for step in found.steps) == runs_of_all
    assert sum(one.runs for one in found.by_handler.values()) == runs_of_all


def test_the_hour_is_shown_by_the_minute(runs):
    found = asked("1h")
    assert [step.runs for step in found.steps[:2]] == [2, 1]
    assert len(found.steps) == 60
    assert found.until == NOON + timedelta(minutes=90)


def test_failures_are_told_by_handler_and_step(runs):
    found = asked("6h")
    assert found.whole.failed == 30
    assert sum(found.failures["tests.noop"]) == 30
    assert "tests.other" not in found.failures


def test_one_handler_can_be_asked_for(runs):
    for tenants in (None, frozenset({8})):
        found = asked("6h", handler="tests.other", tenants=tenants)
        assert found.whole.runs == 9
        assert found.whole.ran(0.5) == pytest.approx(timedelta(seconds=3), rel=0.07)


def test_another_tenants_runs_are_in_no_figure(runs):
    found = asked("7d", tenants=frozenset({8}))
    assert set(found.by_handler) == {"tests.other"}
    assert found.whole.failed == 0


@pytest.mark.django_db
def test_too_many_sums_for_one_page_are_refused(runs, monkeypatch):
    monkeypatch.setattr(metrics, "MOST", 1)
    with pytest.raises(keyset.TooSlow):
        asked("6h")


@pytest.mark.postgresql
@pytest.mark.django_db
def test_a_month_of_all_tenants_is_read_without_a_look_at_the_runs(runs):
    with CaptureQueriesContext(connection) as queries:
        asked("30d")
    assert not [
        one
        for one in queries
        if 'audit_run"' in one["sql"] or "FROM audit_run\n" in one["sql"]
    ]
    # The range's place, its reads, and the timeout with its savepoint around them.
    assert len(queries) <= 8


@given(
    st.lists(st.floats(1, 8e7), min_size=1, max_size=200),
    st.sampled_from([0.5, 0.95, 0.99]),
)
def test_a_percentile_is_right_to_six_percent(lengths, part):
    counts: dict[str, int] = {}
    for length in lengths:
        bucket = str(next(b for b in range(160) if length < 10 ** ((b + 1) / 20)))
        counts[bucket] = counts.get(bucket, 0) + 1
    said = percentile(counts, part)
    assert said is not None
    true = sorted(lengths)[max(0, -int(-part * len(lengths) // 1) - 1)]
    assert said / MS == pytest.approx(true, rel=0.13)


def test_nothing_has_no_percentile():
    assert percentile({}, 0.5) is None
