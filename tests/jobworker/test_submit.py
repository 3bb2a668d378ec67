"""Submitting: a pending row and its Change, in the caller's transaction."""

from collections.abc import Callable

import pytest
from django.db import transaction

from audit.models import Change
from jobworker.exceptions import InvalidParams, Locked, UnknownType
from jobworker.models import Job
from jobworker.submit import submit
from tests import factories
from tests.jobworker.rows import deployment
from workqueue import wakeup
from workqueue.models import Tenant

Submit = Callable[..., Job]


def test_a_job_has_the_rules_of_its_row_and_a_change_says_who(
    submitted: Submit, acme: Tenant
) -> None:
    job = submitted("log:1", type="act_alone", priority=7, why="because")
    assert (job.tier, job.exclusive, job.time_limit_s) == ("light", "alone", 3600)
    assert (job.status, job.priority, job.subject) == ("pending", 7, "log:1")
    assert job.created_at is not None
    change = Change.objects.get(subject=f"job:{job.id}")
    assert (change.verb, change.who, change.why) == ("submitted", "test", "because")
    assert change.tenant_id == acme.id


def test_it_joins_the_callers_transaction_and_wakes_workers_after_it(
    submitted: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(wakeup, "notify", woken.append)
    with transaction.atomic():
        submitted()
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert woken == []
    submitted()
    assert woken == ["millrace_jobs"]


def test_what_is_wrong_is_said_and_nothing_is_made(
    acme: Tenant, submitted: Submit
) -> None:
    with pytest.raises(InvalidParams, match="no such parameter"):
        submit("act_light", {"nonsense": 1}, tenant=acme, who="t", origin="command")
    with pytest.raises(UnknownType, match="There are act_heavy"):
        submit("nothing", {}, tenant=acme, who="t", origin="command")
    assert not Job.objects.exists()
    assert not Change.objects.exists()


def test_a_second_unfinished_job_on_the_same_thing_is_refused_with_the_first_named(
    submitted: Submit,
) -> None:
    first = submitted("log:1", lock="deployment:demo")
    with pytest.raises(Locked, match=f"log:1 is locked by job {first.id} .*pending"):
        submitted("log:1", lock="deployment:demo")
    submitted("log:1", lock="deployment:demo", tenant=factories.tenant())
    Job.objects.filter(pk=first.pk).update(status="succeeded")
    submitted("log:1", lock="deployment:demo")


def test_what_cannot_be_for_this_tenant_is_said_when_it_is_submitted(
    acme: Tenant,
) -> None:
    def destroy(tenant: Tenant, name: str = "demo") -> Job:
        return submit(
            "cluster_destroy", {"name": name}, tenant=tenant, who="t", origin="admin"
        )

    deployment(tenant=acme)
    deployment(tenant=acme, name="gone", status="destroyed")
    with pytest.raises(InvalidParams, match=r"acme has no cluster deom. It has demo."):
        destroy(acme, "deom")
    with pytest.raises(InvalidParams, match=r"other has no cluster demo. It has none."):
        destroy(factories.tenant("other"))
    assert not Job.objects.exists()
    assert not Change.objects.exists()
    assert destroy(acme).status == "pending"
    assert destroy(acme, "gone").status == "pending"


def test_what_is_about_to_be_made_is_locked_not_unknown(acme: Tenant) -> None:
    made = submit(
        "cluster_provision", {"name": "new"}, tenant=acme, who="t", origin="admin"
    )
    with pytest.raises(Locked, match=str(made.id)):
        submit("cluster_destroy", {"name": "new"}, tenant=acme, who="t", origin="admin")


def test_adopting_is_not_refused_since_it_begins_nothing(acme: Tenant) -> None:
    there = deployment(tenant=acme)
    asked = {"tenant": acme, "who": "t", "origin": "admin"}
    old = submit("cluster_destroy", {"name": "demo"}, **asked)
    Job.objects.update(status="failed")
    there.delete()
    assert submit("cluster_destroy", old.params, **asked, adopts=old).adopts == old


def test_a_type_that_works_for_all_tenants_is_submitted_for_the_platform_alone(
    acme: Tenant,
) -> None:
    asked = {"params": {}, "who": "t", "origin": "engine"}
    with pytest.raises(InvalidParams, match="tenant: Jobs of type autodelete_sweep"):
        submit("autodelete_sweep", tenant=acme, **asked)
    assert not Job.objects.exists()
    job = submit("autodelete_sweep", tenant=factories.platform(), **asked)
    assert job.tenant.is_platform


@pytest.mark.parametrize("priority", ["high", "7", 1.5, None, True])
def test_a_priority_that_is_no_whole_number_is_refused(
    submitted: Submit, priority: object
) -> None:
    with pytest.raises(InvalidParams, match="is not a whole number") as refused:
        submitted(priority=priority)
    assert set(refused.value.problems) == {"priority"}
    assert not Job.objects.exists()


def test_who_and_from_where_are_stored_whatever_is_in_them(acme: Tenant) -> None:
    job = submit(
        "cluster_provision",
        {"name": "demo"},
        tenant=acme,
        who="a\0b\ud800" + "x" * 200,
        origin="a\0b" + "x" * 200,
        why="a\0b\ud800",
    )
    job.refresh_from_db()
    assert job.created_by.startswith("a\N{SYMBOL FOR NULL}b\\ud800x")
    assert job.origin.startswith("a\N{SYMBOL FOR NULL}b")
