"""instance.sum_up."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from audit.models import RunSum
from scheduler.handlers.instance import sum_up
from tests.audit.conftest import recorded

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def context(*, stopping=False):
    return SimpleNamespace(now=NOON + timedelta(minutes=2), stopping=lambda: stopping)


def test_it_sums_up_the_minutes_that_are_over_and_says_how_many():
    recorded(finished_at=NOON)
    outcome = sum_up.run(context())
    assert outcome.summary == "1 minute summed up"
    assert (outcome.seen, outcome.changed) == (
        0,
        0,
    )  # so its own runs are not kept for long
    assert RunSum.objects.get().runs == 1


def test_it_stops_where_its_worker_does():
    recorded(finished_at=NOON)
    assert sum_up.run(context(stopping=True)).summary == "0 minutes summed up"
    assert not RunSum.objects.exists()
