"""What tests of the job worker's screens share: types of their own, and rows in every state."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit import clock
from jobworker import registry
from jobworker.models import Job
from tests import factories, screens
from workqueue import live
from workqueue.models import Node, Tenant


@pytest.fixture(autouse=True)
def types(settings: Any) -> Iterator[None]:
    """The types of `screen_types`, and no pause of a test before."""
    settings.JOBWORKER_TYPES = "tests.jobworker.screen_types.JOB_TYPES"
    settings.JOBWORKER_JOBS_PACKAGE = "tests.jobworker.screen_types"
    registry.types.cache_clear()
    live.forget()
    yield
    registry.types.cache_clear()
    live.forget()


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def pending(of: Tenant, **values: Any) -> Job:
    """A job that waits."""
    defaults: dict[str, Any] = {
        "tenant_slug": of.slug,
        "type": "grow",
        "tier": "heavy",
        "subject": "cluster orion",
        "params": {"name": "orion", "nodes": 3},
        "time_limit_s": 7200,
        "created_at": clock.now() - timedelta(seconds=38),
        "created_by": "operator",
        "origin": "admin",
    }
    return Job.objects.create(tenant=of, **{**defaults, **values})


def running(of: Tenant, **values: Any) -> Job:
    """A job that a worker holds and runs, with a fresh heartbeat."""
    now = clock.now()
    started = values.get("started_at") or now - timedelta(minutes=26)
    defaults: dict[str, Any] = {
        "status": Job.Status.RUNNING,
        "claim_id": clock.uuid7(started),
        "node_id": clock.uuid7(),
        "node": "app-1, 31",
        "created_at": started - timedelta(seconds=4),
        "claimed_at": started,
        "started_at": started,
        "heartbeat_at": now - timedelta(milliseconds=200),
        "progress_at": now - timedelta(seconds=1),
        "progress": 62,
        "phase": "apply",
        "phases": [
            {"name": "plan", "at": started.isoformat()},
            {"name": "apply", "at": (started + timedelta(seconds=41)).isoformat()},
        ],
    }
    return pending(of, **{**defaults, **values})


def ended(of: Tenant, status: str = Job.Status.FAILED, **values: Any) -> Job:
    """A job that is over, with its run in the ledger."""
    now = values.get("finished_at") or clock.now()
    job = running(
        of,
        **{
            "status": status,
            "finished_at": now,
            "progress": 100 if status == Job.Status.SUCCEEDED else 40,
            "error": "quota exceeded" if status == Job.Status.FAILED else "",
            # Only a job whose worker was lost leaves something that goes on.
            "error_code": "abandoned" if "external_ref" in values else "",
            **values,
        },
    )
    screens.run(
        of,
        id=job.claim_id,
        kind="job",
        handler=job.type,
        dedup_key=str(job.pk),
        trigger="call",
        outcome=status,
        error=job.error,
        enqueued_at=job.created_at,
        claimed_at=job.claimed_at,
        started_at=job.started_at,
        finished_at=now,
        line_count=job.line_count,
    )
    return job


def worker(**report: Any) -> Node:
    """A job worker that is alive, with what it said last."""
    caps = {"heavy": 2, "medium": 1, "light": 3, "total": 3}
    said = {
        "caps": {**caps, "WORKER_EXECUTOR_THREADS": 0},
        "used": {**caps, "WORKER_EXECUTOR_THREADS": 0},
        "policy": {**caps, "WORKER_EXECUTOR_THREADS": 0},
        "reduced": [],
        "in_flight": 0,
        "asleep": 0,
        "usable": 3,
        "threads": 25,
        "stuck": 0,
        "pool": 10,
        "types": ["grow", "follow_export", "sweep"],
        "lacks": {},
        "adjusted": [],
        "settings_version": 0,
        "loop": "running",
        "connections": {"pool": 10, "outside": 3},
    }
    values = {
        name: report.pop(name) for name in ("host", "heartbeat_at") if name in report
    }
    return factories.node(
        Node.Kind.JOBWORKER, **{"host": "app-1", **values}, report={**said, **report}
    )
