"""How long a run waited: the same in every place that tells it."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict

from audit import export, lengths, queries, sorting, sum_up, tally, timeline
from audit.filters import RunFilters
from audit.models import Run, RunSum
from tests.audit.conftest import recorded

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def attempts() -> list[Run]:
    """An item that went on where it stopped: each attempt 3 s in the queue, 20 s at work."""
    for number in (1, 2, 3):
        claimed = NOON + 23 * SECOND * number
        recorded(
            item_id=7, attempt=number, enqueued_at=NOON + 20 * SECOND, claimed_at=claimed,
            started_at=claimed, finished_at=claimed + 20 * SECOND,
        )  # fmt: skip
    return list(Run.objects.order_by("attempt"))


def test_of_an_attempt_that_is_not_the_first_only_its_page_knows_the_wait(
    attempts: list[Run],
):
    assert [lengths.waited(run) for run in attempts] == [3 * SECOND, None, None]
    shown = [timeline.of_run(row) for row in queries.attempts(7)]
    assert [timeline.waited(each, shown) for each in shown] == [3 * SECOND] * 3


def test_the_order_the_filter_and_the_file_know_the_waits_that_the_list_shows(
    attempts: list[Run],
):
    first = attempts[:1]
    ordered, _ = sorting.within(Run.objects.all(), sorting.of("waited"))
    assert list(ordered) == first
    for asked, found in (("2 s", first), ("4 s", [])):
        query = QueryDict(mutable=True)
        query["waited_over"] = asked
        assert list(RunFilters(query, queryset=Run.objects.all()).qs) == found
    filters = RunFilters(QueryDict(), queryset=Run.objects.all())
    lines = export.response(export.RUNS, filters, form="jsonl").streaming_content
    told = {line["attempt"]: line["waited_ms"] for line in map(json.loads, lines)}
    assert told == {1: 3000, 2: None, 3: None}


def test_the_sums_and_the_counters_count_the_waits_that_the_list_shows(
    attempts: list[Run],
):
    tally.read(now=NOON)
    counted = tally.read(now=NOON + timedelta(minutes=3))["tests.noop"]
    assert (sum(counted.waited.runs), counted.waited.seconds) == (1, 3.0)
    assert (sum(counted.ran.runs), counted.ran.seconds) == (3, 60.0)
    sum_up.sum_up(NOON + timedelta(minutes=3), goes_on=lambda: True)
    sums = RunSum.objects.filter(minutes=1)
    assert sum(sum(row.waits.values()) for row in sums) == 1
    assert sum(sum(row.rans.values()) for row in sums) == 3
