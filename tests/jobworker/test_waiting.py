"""Why a pending job waits, as a sentence."""

from collections.abc import Callable
from typing import Any

import pytest

from audit import clock
from jobworker.models import Job
from jobworker.waiting import why
from tests import factories
from workqueue import live, pauses
from workqueue.models import Node, Tenant

Submit = Callable[..., Job]
REPORT: dict[str, Any] = {
    "caps": {"heavy": 2, "medium": 1, "light": 3, "total": 3},
    "usable": 3,
    "threads": 25,
    "asleep": 0,
    "types": ["act_heavy", "act_medium", "act_light", "act_alone"],
    "lacks": {},
    "loop": "running",
}


def worker(host: str = "app-1", **more: Any) -> Node:
    return factories.node("jobworker", host=host, report={**REPORT, **more})


def said(job: Job) -> str:
    live.forget()
    return why([job], clock.now())[job.id]


def test_no_worker_is_said_with_what_starts_one(submitted: Submit) -> None:
    assert said(submitted()) == (
        "no job worker is alive; start one with manage.py runjobworker"
    )


def test_a_type_that_nobody_knows_is_said(submitted: Submit) -> None:
    worker(types=["act_heavy"])
    assert said(submitted()) == (
        "no live job worker knows the type act_light; update the workers"
    )


def test_which_cap_is_reached_where(submitted: Submit, acme: Tenant) -> None:
    first = worker()
    worker("app-2", lacks={"terraform": ["act_heavy"]})
    for _ in range(2):
        factories.running_job(acme, first, "act_heavy", tier="heavy")
    assert said(submitted(type="act_heavy")) == (
        "the cap heavy = 2 is reached on app-1; "
        "app-2 cannot serve heavy: terraform is not installed"
    )
    assert said(submitted()) == "starts with the next pass"


def test_the_total_the_pool_and_a_drain_are_reasons(
    submitted: Submit, acme: Tenant
) -> None:
    node = worker(usable=2)
    for _ in range(2):
        factories.running_job(acme, node)
    job = submitted()
    assert said(job) == ("app-1 runs as many jobs as its connection pool serves, 2")
    Node.objects.update(report={**REPORT, "usable": None, "caps": {"total": 2}})
    assert said(job) == "the cap total = 2 is reached on app-1"
    Node.objects.update(report={**REPORT, "threads": 3, "stuck": 1})
    assert said(job) == "app-1 uses all of its 3 threads, 1 of them stuck"
    Node.objects.update(report={**REPORT, "usable": 0, "stuck": 5})
    assert said(job) == (
        "app-1 runs as many jobs as its connection pool serves beside 5 stuck thread(s), 0"
    )
    Node.objects.update(report={**REPORT, "loop": "draining"})
    assert said(job) == "app-1 is draining"


@pytest.mark.parametrize(
    ("usable", "asleep", "reason"),
    [
        (3, 0, "the cap total = 3 is reached on app-1"),
        (3, 3, "the cap total = 3 is reached on app-1"),
        (1, 3, "the cap total = 3 is reached on app-1"),
    ],
)
def test_jobs_that_sleep_count_among_the_total_whatever_the_pool_serves(
    submitted: Submit, acme: Tenant, usable: int, asleep: int, reason: str
) -> None:
    used = {**REPORT["caps"], "total": usable}
    node = worker(usable=usable, used=used, asleep=asleep)
    for tier in ("light", "light", "heavy"):
        factories.running_job(acme, node, tier=tier)
    assert said(submitted()) == reason


def test_of_a_total_that_the_pool_reduces_only_those_awake_count(
    submitted: Submit, acme: Tenant
) -> None:
    caps = {**REPORT["caps"], "total": 12}
    node = worker(caps=caps, used={**caps, "total": 1}, usable=1, asleep=1)
    factories.running_job(acme, node)
    assert said(submitted()) == "starts with the next pass"


def test_the_exclusive_peer_is_named(submitted: Submit, acme: Tenant) -> None:
    peer = factories.running_job(acme, worker(), "act_alone", exclusive="alone")
    text = said(submitted(type="act_alone"))
    assert text.startswith(f"one at a time: job {str(peer.id)[:8]}… of the group alone")


def test_a_tier_that_there_is_not_is_said(acme: Tenant, job_types: None) -> None:
    worker()
    text = said(factories.job(acme, tier="huge"))
    assert text.startswith("no worker serves the tier 'huge'; there are heavy, medium")


def test_a_pause_is_said_with_who_and_why(submitted: Submit) -> None:
    worker()
    pauses.pause(
        scope="job_type",
        handler="act_light",
        reason="CHG-1",
        who="ann",
        origin="command",
    )
    assert said(submitted()) == "paused by ann: “CHG-1”"


@pytest.mark.parametrize(
    "report",
    [[], "x", None, {"caps": 3, "types": 5, "lacks": [1]}, {"lacks": {"a": 3}}],
)
def test_whatever_a_worker_reports_a_sentence_comes_out(
    submitted: Submit, report: Any
) -> None:
    factories.node("jobworker", report=report if report is not None else {})
    assert said(submitted())
