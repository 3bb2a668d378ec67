"""The timetable: documented rows keep their documented cadence."""

from typing import Any

import pytest

from scheduler import cadence
from scheduler.timetable import TIMETABLE
from workqueue.registry import DAILY_RETRY

# Frequencies that operators were promised.
PROMISED = {
    "agents.allocate": "10s",
    "agents.reset_stale": "5m",
    "archival.apply_policies": "daily 23:00",
    "catalogue.seed": "12h",
    "compliance.score": "monthly 1,15 00:00",
    "enrollments.process_due": "30m",
    "healthchecks.maintenance_windows": "1h",
    "healthchecks.recompute_status": "30s",
    "instance.report_heartbeat": "30m",
    "inventory.deprecations": "30s",
    "inventory.vulnerabilities": "30s",
    "notifications.deliver": "15s",
    "notifications.match_subscriptions": "30s",
    "plugins.rediscover": "1h",
}

pytestmark = pytest.mark.once


def test_rows_that_operators_were_promised_keep_their_cadence() -> None:
    here = {row.key: row.cadence for row in TIMETABLE}
    assert here
    differ = {
        key: text for key, text in here.items() if PROMISED.get(key, text) != text
    }
    assert differ == {}


@pytest.mark.parametrize("row", TIMETABLE, ids=lambda row: row.key)
def test_a_row_that_runs_daily_or_more_rarely_is_retried(row: Any) -> None:
    """The next tick is no retry where it is a day away."""
    if row.cadence is None:
        return
    if cadence.parse(row.cadence, "UTC").period.days >= 1:
        assert row.retry == DAILY_RETRY


def test_a_heartbeat_without_an_address_says_why_it_is_not_enqueued(
    settings: Any,
) -> None:
    from scheduler.timetable import HEARTBEAT_SET

    settings.HEARTBEAT_URL = ""
    assert HEARTBEAT_SET.holds(None).children == [("pk", -1)]  # type: ignore[arg-type]
    settings.HEARTBEAT_URL = "https://heartbeat.example"
    assert not HEARTBEAT_SET.holds(None)  # type: ignore[arg-type]
