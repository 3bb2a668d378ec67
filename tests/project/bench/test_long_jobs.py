"""The benchmark of long jobs: small runs of the same measures."""

from collections.abc import Iterator
from typing import Any

import pytest

from jobworker import registry
from jobworker.models import Job
from project.bench import job_types, long_jobs
from project.bench.jobs import mark, nap, talk
from tests import databases

pytestmark = pytest.mark.race


@pytest.fixture(autouse=True)
def bench(
    transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The benchmark's job types, here as in the worker."""
    settings.JOBWORKER_TYPES = "project.bench.job_types.JOB_TYPES"
    settings.JOBWORKER_JOBS_PACKAGE = "project.bench.jobs"
    monkeypatch.setenv("DATABASE_URL", databases.url())
    registry.types.cache_clear()
    yield
    registry.types.cache_clear()


@pytest.mark.once
def test_each_type_has_its_module() -> None:
    modules = {each.__name__.rpartition(".")[2] for each in (mark, nap, talk)}
    assert modules == {row.type for row in job_types.JOB_TYPES}


def test_a_start_is_measured_for_each_submit() -> None:
    found = long_jobs.submit_to_start(count=3)
    assert 0 < found["p50"] <= found["p95"]


@pytest.mark.postgresql
def test_output_is_measured_with_its_order_and_its_cost() -> None:
    found = long_jobs.output(seconds=2)
    assert found["all_in_order"] == 1
    assert found["lag_p95_s"] > 0
    assert {job.line_count for job in Job.objects.all()} == {2000}


@pytest.mark.postgresql
def test_sleepers_are_measured_while_all_of_them_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_jobs, "SLEEPERS", 4)
    monkeypatch.setattr(long_jobs, "NAP", 3.0)
    found = long_jobs.sleepers()
    assert found["asleep"] == 4
    assert found["connections"] >= 3
    assert found["rss_mb"] > 10


@pytest.mark.postgresql
def test_the_memory_of_many_lines_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_jobs, "MANY_LINES", 2_000)
    assert long_jobs.many_lines()["growth_mb"] >= 0


@pytest.mark.postgresql
def test_changed_caps_are_measured_until_the_worker_uses_them() -> None:
    found = long_jobs.edits(count=2)
    assert 0 < found["p95_s"] < 30
    assert found["claims_above"] == 0
