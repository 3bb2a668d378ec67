"""A job type in no tier, in two, or without a module is refused before anything starts."""

from datetime import timedelta
from typing import Any

import pytest

from jobworker import checks, registry
from jobworker.dispatch import JOB_TYPES
from jobworker.registry import JobType

pytestmark = pytest.mark.once


def ids(monkeypatch: pytest.MonkeyPatch, *rows: JobType) -> list[str | None]:
    monkeypatch.setattr(registry, "rows", lambda: rows)
    registry.types.cache_clear()
    try:
        return [each.id for each in checks.job_types()]
    finally:
        registry.types.cache_clear()


def row(**more: Any) -> JobType:
    values = {
        "type": "act_light",
        "tier": "light",
        "purpose": "For tests.",
        "time_limit": timedelta(hours=1),
    }
    return JobType(**{**values, **more})


def test_the_products_types_each_stand_once_in_a_tier(job_types: None) -> None:
    assert len({each.type for each in JOB_TYPES}) == len(JOB_TYPES)
    assert {each.tier for each in JOB_TYPES} <= set(registry.TIERS)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row()], []),
        ([row(), row(tier="heavy")], ["jobworker.E002"]),
        ([row(tier="")], ["jobworker.E003"]),
        ([row(tier="enormous")], ["jobworker.E003"]),
        ([row(purpose="")], ["jobworker.E004"]),
        ([row(time_limit=timedelta())], ["jobworker.E004"]),
        ([row(type="nowhere")], ["jobworker.E005"]),
    ],
)
def test_what_is_wrong_with_a_row_is_named(
    monkeypatch: pytest.MonkeyPatch,
    job_types: None,
    rows: list[JobType],
    expected: list[str],
) -> None:
    assert ids(monkeypatch, *rows) == expected


def test_a_table_that_cannot_be_imported_is_named(settings: Any) -> None:
    settings.JOBWORKER_TYPES = "nowhere.TYPES"
    assert [each.id for each in checks.job_types()] == ["jobworker.E001"]
