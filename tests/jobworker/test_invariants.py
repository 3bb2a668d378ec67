"""The rules about jobs are found broken where they are broken."""

from datetime import timedelta

import pytest

from audit import clock
from jobworker.invariants import RULES
from jobworker.models import Job
from tests import factories
from workqueue import invariants
from workqueue.models import Node, Tenant


def broken() -> set[str]:
    return {each.rule.id for each in invariants.check() if each.rule in RULES}


def test_a_sound_table_breaks_none(acme: Tenant) -> None:
    factories.job(acme)
    factories.running_job(acme, factories.node("jobworker"))
    assert broken() == set()


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        ("I4", {"status": "succeeded", "finished_at": "now"}),
        ("I7", {"status": "pending"}),
        ("I7", {"progress": 120}),
    ],
)
def test_a_row_that_contradicts_itself_is_found(
    acme: Tenant, rule: str, values: dict[str, object]
) -> None:
    job = factories.running_job(acme, factories.node("jobworker"))
    given = {k: clock.now() if v == "now" else v for k, v in values.items()}
    Job.objects.filter(pk=job.pk).update(**given)
    assert broken() == {rule}


def test_a_job_that_nobody_holds_is_found_while_somebody_could_have_failed_it(
    acme: Tenant,
) -> None:
    long_ago = clock.now() - timedelta(days=1)
    factories.running_job(
        acme,
        factories.node("jobworker", status="stopped", stopped_at=long_ago),
        heartbeat_at=long_ago,
        claimed_at=long_ago - timedelta(hours=1),
    )
    assert broken() == set()
    Node.objects.filter(pk=factories.node("jobworker").pk).update(started_at=long_ago)
    assert broken() == {"I8"}


def test_a_job_worker_that_uses_other_caps_is_found(acme: Tenant) -> None:
    factories.node("jobworker", report={"settings_version": 4, "policy": {}})
    assert broken() == {"I11"}
