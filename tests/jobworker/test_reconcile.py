"""Abandoned jobs are failed, never requeued; what lives is left alone."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from audit import clock
from audit.models import Run
from jobworker import registry
from jobworker.models import Job
from jobworker.reconcile import give_up, reconcile, stopped_after
from tests import factories
from workqueue.models import Node, Tenant

Submit = Callable[..., Job]


@pytest.fixture
def held(acme: Tenant, job_types: None) -> Job:
    ref = {"what": "AWS export e-1", "then": "it continues at the provider"}
    return factories.running_job(
        acme, factories.node("jobworker"), "act_follows", external_ref=ref
    )


def test_a_job_of_a_live_process_is_left_alone(held: Job) -> None:
    assert reconcile() == []
    assert reconcile(may_judge=True) == []


@pytest.mark.parametrize("how", ["stopped", "gone", "given up"])
def test_what_a_process_left_is_failed_at_once_by_anybody(held: Job, how: str) -> None:
    if how == "stopped":
        Node.objects.update(status="stopped")
    elif how == "gone":
        Node.objects.all().delete()
    else:
        assert give_up([held.claim_id]) == 1  # type: ignore[list-item]
    assert reconcile() == [held.id]
    held.refresh_from_db()
    assert (held.status, held.error_code) == ("failed", "abandoned")
    assert held.error == (
        f"worker {held.node} stopped while AWS export e-1 was running; it continues at "
        'the provider. It is not started again. Use "Adopt" to follow it again.'
    )
    run = Run.objects.get(id=held.claim_id)
    assert (run.outcome, run.dedup_key) == ("abandoned", str(held.id))
    assert reconcile() == []
    assert Run.objects.count() == 1


def test_a_type_that_cannot_put_its_rows_right_keeps_no_job_from_being_ended(
    acme: Tenant, held: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = factories.running_job(acme, factories.node("jobworker"), "act_light")
    Node.objects.update(status="stopped")
    told: list[Any] = []

    def refuse(type: str, job_id: UUID, why: str) -> None:
        told.append(job_id)
        Job.objects.filter(pk=job_id).update(summary="half of its work")
        raise ValueError("it cannot")

    monkeypatch.setattr(registry, "broken_off", refuse)
    assert set(reconcile()) == set(told) == {held.id, other.id}
    assert Run.objects.count() == 2
    assert {job.summary for job in Job.objects.all()} == {""}


def test_silence_alone_is_judged_only_by_who_may_judge(held: Job) -> None:
    long_ago = clock.now() - stopped_after() - timedelta(seconds=1)
    Job.objects.update(heartbeat_at=long_ago, claimed_at=long_ago - timedelta(hours=1))
    assert reconcile() == []
    assert reconcile(may_judge=True) == [held.id]


def test_a_job_that_ended_meanwhile_stays_as_it_ended(
    held: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    Node.objects.update(status="stopped")
    Job.objects.update(status="succeeded")
    assert reconcile() == []
    held.refresh_from_db()
    assert held.status == "succeeded"


def test_jobs_of_a_removed_tenant_are_ended(submitted: Submit, held: Job) -> None:
    waiting = submitted()
    Tenant.objects.filter(pk=held.tenant_id).delete()
    reconcile()
    waiting.refresh_from_db()
    held.refresh_from_db()
    assert (waiting.status, waiting.summary) == ("cancelled", "its tenant was removed")
    assert held.cancel_requested_at is not None
