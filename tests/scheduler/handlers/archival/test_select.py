from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from audit.models import Event
from scheduler.handlers.archival.models import ArchivalPolicy
from scheduler.handlers.archival.select import cutoff, places, selected
from workqueue.models import Tenant

NOW = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)


def test_the_cutoff_of_the_worked_example() -> None:
    run = datetime.fromisoformat("2026-11-29T23:00:00+01:00")

    found = cutoff(run, keep_days=30, zone="Europe/Berlin")

    assert found.isoformat() == "2026-10-29T23:00:00+00:00"


@pytest.mark.parametrize(
    ("zone", "run", "expected"),
    [
        # 2018-11-04 has no midnight in Sao Paulo: it begins at 01:00 -02:00.
        ("America/Sao_Paulo", "2018-11-05T12:00:00+00:00", "2018-11-04T03:00:00+00:00"),
        # 2026-10-31 has midnight twice in Havana's autumn; the first one counts.
        ("America/Havana", "2026-11-02T12:00:00+00:00", "2026-11-01T04:00:00+00:00"),
    ],
)
def test_a_midnight_that_is_missing_or_doubled_is_its_first_instant(
    zone: str, run: str, expected: str
) -> None:
    found = cutoff(datetime.fromisoformat(run), keep_days=1, zone=zone)

    assert found.isoformat() == expected


def test_a_row_at_exactly_the_cutoff_stays(
    acme: Tenant,
    policy: Callable[..., ArchivalPolicy],
    event: Callable[..., Event],
    settings: Any,
) -> None:
    settings.SERVER_TIME_ZONE = "Europe/Berlin"
    policy()
    at = datetime(2026, 10, 29, 23, 0, tzinfo=UTC)
    event(occurred_at=at)
    older = event(occurred_at=at - timedelta(microseconds=1))
    run = datetime.fromisoformat("2026-11-29T23:00:00+01:00")

    [chosen] = selected(tenant_id=acme.pk, tenant=acme.slug, now=run)

    assert [place.id for place in places(chosen, after=None)] == [older.pk]


def test_a_tenants_own_policy_comes_before_the_default(
    acme: Tenant, policy: Callable[..., ArchivalPolicy]
) -> None:
    policy(tenant=None, keep_days=90)
    policy(keep_days=7)

    [chosen] = selected(tenant_id=acme.pk, tenant=acme.slug, now=NOW)

    assert chosen.policy.keep_days == 7


def test_a_disabled_policy_of_its_own_switches_the_default_off(
    acme: Tenant, policy: Callable[..., ArchivalPolicy]
) -> None:
    policy(tenant=None, keep_days=90)
    policy(is_enabled=False)

    assert selected(tenant_id=acme.pk, tenant=acme.slug, now=NOW) == []


def test_rows_with_the_same_time_are_all_found_across_batches(
    acme: Tenant,
    policy: Callable[..., ArchivalPolicy],
    event: Callable[..., Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scheduler.handlers.archival.select.BATCH", 2)
    policy()
    rows = [event() for _ in range(5)]
    [chosen] = selected(tenant_id=acme.pk, tenant=acme.slug, now=NOW)

    assert [place.id for place in places(chosen, after=None)] == [r.pk for r in rows]
