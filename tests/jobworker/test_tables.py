"""A row of the list of jobs."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from jobworker.models import Job
from jobworker.tables import JobLine, JobTable
from tests.jobworker.screening import ended, pending, running, types  # noqa: F401
from tests.screens import HOSTILE, LIVE
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db


def cell(name: str, job: Job, why: str = "") -> Any:
    line = JobLine(job=job, why=why)
    table = JobTable([line], now=clock.now())
    return getattr(table, f"render_{name}")(line).replace("\u00a0", " ")


def test_what_runs_shows_its_phase_and_that_it_is_told_to_stop(acme: Tenant):
    job = running(acme, cancel_requested_at=clock.now(), cancel_requested_by="anna")
    assert "apply" in cell("what", job)
    assert "told to stop by anna" in cell("what", job)
    assert "started" in cell("what", running(acme, phase=""))


def test_progress_stands_where_it_tells_something(acme: Tenant):
    assert "62 %" in cell("progress", running(acme))
    assert "40 %" in cell("progress", ended(acme))
    for job in (pending(acme), ended(acme, Job.Status.SUCCEEDED)):
        assert "%" not in cell("progress", job)


def test_how_it_ended_stands_in_place_of_the_phase(acme: Tenant):
    assert (
        cell("what", ended(acme, Job.Status.SUCCEEDED, summary="3 added")) == "3 added"
    )
    assert 'class="err">quota exceeded' in cell("what", ended(acme))
    assert (
        cell("what", pending(acme), why="starts with the next pass")
        == "starts with the next pass"
    )
    assert (
        cell("lasted", ended(acme, started_at=clock.now() - timedelta(minutes=3)))
        == "3 min"
    )


def test_hostile_text_stays_text(acme: Tenant):
    job = running(acme, phase=HOSTILE[:200], subject=HOSTILE[:200], type=HOSTILE[:64])
    for name in ("job", "what"):
        found = cell(name, job)
        assert not any(mark in found for mark in LIVE)
