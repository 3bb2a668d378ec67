"""Which job is claimed, and that nobody else has it."""

from collections.abc import Callable
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connections

from audit import clock
from jobworker import caps
from jobworker.claim import Fits, candidate, claim, give_back
from jobworker.models import Job
from tests import factories
from workqueue import node, policy
from workqueue.models import Tenant
from workqueue.node import Me

Submit = Callable[..., Job]
ALL = ("heavy", "medium", "light")
TYPES = ("act_heavy", "act_medium", "act_light", "act_alone")


@pytest.fixture
def me(transactional_db: None) -> Me:
    return node.register(kind="jobworker", report={})


def take(me: Me, *, version: int = 0, **fits: Any) -> Job | None:
    what = Fits(**{"tiers": ALL, "types": TYPES, **fits})
    return claim(what, claim_id=clock.uuid7(), me=me, version=version)


def test_a_claim_gives_the_job_a_claimant_and_a_start(
    me: Me, submitted: Submit
) -> None:
    job = submitted()
    claimed = take(me)
    assert claimed is not None
    assert claimed.id == job.id
    assert (claimed.status, claimed.node_id, claimed.node) == (
        "running",
        me.id,
        me.name,
    )
    moments = {claimed.claimed_at, claimed.started_at, claimed.heartbeat_at}
    assert None not in moments
    assert take(me) is None


def test_tenants_take_turns_in_each_tier_then_priority_then_age(
    me: Me, submitted: Submit, acme: Tenant
) -> None:
    few = factories.tenant("few")
    crowd = [submitted(str(n)) for n in range(5)]
    late = submitted("late", tenant=few)
    urgent = submitted("urgent", priority=5)
    order = [job.params["does"] for _ in range(4) if (job := take(me))]
    assert order == ["urgent", "late", "0", "1"]
    # What a tenant has in another tier does not cost it its turn in this one.
    submitted("heavy", tenant=few, type="act_heavy")
    submitted("second", tenant=few)
    assert take(me, tiers=("heavy",)).params["does"] == "heavy"  # type: ignore[union-attr]
    assert take(me).params["does"] == "second"  # type: ignore[union-attr]
    assert {urgent.status, late.status, crowd[0].status} == {"pending"}


def test_a_thousand_jobs_of_one_delay_anothers_by_one(
    me: Me, submitted: Submit
) -> None:
    other = factories.tenant("other")
    first = submitted("0")
    many = [
        Job(
            **{
                **{f.attname: getattr(first, f.attname) for f in Job._meta.fields},
                "id": clock.uuid7(),
            }
        )
        for _ in range(1000)
    ]
    Job.objects.bulk_create(many)
    take(me)
    mine = submitted("mine", tenant=other)
    claimed = take(me)
    assert claimed is not None
    assert claimed.id == mine.id


@pytest.mark.parametrize(
    "fits",
    [
        {"tiers": ("heavy", "medium")},
        {"types": ("act_heavy",)},
        {"tiers": ()},
    ],
)
def test_only_what_fits_is_claimed(me: Me, submitted: Submit, fits: Any) -> None:
    submitted()
    assert take(me, **fits) is None


def test_a_paused_tenants_jobs_stay(me: Me, submitted: Submit, acme: Tenant) -> None:
    submitted()
    assert take(me, paused_tenants=[acme.id]) is None
    assert take(me) is not None


def test_nothing_is_claimed_under_caps_that_were_changed_meanwhile(
    me: Me, submitted: Submit
) -> None:
    submitted()
    policy.save(
        {"light": 0}, who="t", origin="command", why="", declaration=caps.DECLARATION
    )
    assert take(me, version=0) is None
    assert take(me, version=1) is not None


def test_one_of_an_exclusive_group_at_a_time(me: Me, submitted: Submit) -> None:
    first, second = (submitted(type="act_alone") for _ in range(2))
    plain = submitted()
    claimed = [take(me), take(me), take(me)]
    assert [job.id for job in claimed if job] == [first.id, plain.id]
    assert candidate(Fits(tiers=ALL, types=TYPES)) is None
    Job.objects.filter(pk=first.pk).update(status="succeeded")
    found = take(me)
    assert found is not None
    assert found.id == second.id


def test_a_claim_that_never_began_goes_back_as_it_was(
    me: Me, submitted: Submit
) -> None:
    job = submitted()
    claimed = take(me)
    assert claimed is not None
    assert give_back([claimed.claim_id]) == 1
    job.refresh_from_db()
    assert (job.status, job.claim_id, job.node_id, job.started_at) == (
        "pending",
        None,
        None,
        None,
    )
    assert job.created_at < clock.now() + timedelta(seconds=1)


@pytest.mark.race
def test_however_many_look_at_once_each_job_is_claimed_once(
    me: Me, submitted: Submit
) -> None:
    jobs = [submitted() for _ in range(20)] + [
        submitted(type="act_alone") for _ in range(3)
    ]
    claimed: list[Any] = []
    together = Barrier(4)

    def look() -> None:
        together.wait()
        try:
            while job := take(me):
                claimed.append(job.id)
        finally:
            connections.close_all()

    threads = [Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(claimed) == len(set(claimed)) == len(jobs) - 2
    assert Job.objects.running().filter(exclusive="alone").count() == 1
