"""The first page: is there a master, is work moving, what failed, what is reduced."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit import clock, ledger
from scheduler.models import MasterLease, Schedule
from tests import factories, screens
from tests.audit.conftest import recorded
from tests.jobworker import screening
from workqueue import depth, live, pauses
from workqueue.models import Membership, Node, Tenant, WorkItem

pytestmark = pytest.mark.django_db

INDEX = "/admin/"
REDUCED = {
    "slots": {"asked": 12, "used": 8, "why": "Its pool of 12 connections serves 8."},
    "in_flight": 3,
    "loop": "running",
}


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    """What an earlier test's settings and pauses were."""
    live.forget()
    yield
    live.forget()


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(factories.superuser("operator"))
    return client


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def elect(node: Node, *, expires: timedelta = timedelta(seconds=20)) -> None:
    now = clock.now()
    MasterLease.objects.update_or_create(
        id=1,
        defaults={
            "holder": node.id,
            "node": str(node),
            "term": 41,
            "since": now,
            "renewed_at": now,
            "expires_at": now + expires,
        },
    )


def working(of: Tenant) -> None:
    """A master, a standby, a worker that is reduced, and work."""
    elect(factories.node("server", host="app-1"))
    factories.node("server", host="app-2")
    factories.node("worker", host="queue-2", report=REDUCED)
    Schedule.objects.create(key="tests.noop", since=clock.now())
    factories.item(of, enqueued_at=clock.now(), tenant_slug=of.slug)
    recorded(
        tenant_id=of.id, tenant=of.slug, finished_at=clock.now() - timedelta(minutes=2)
    )


def text(client: Client) -> str:
    """What the page says, without its tags."""
    page = client.get(INDEX)
    assert page.status_code == 200
    said = re.sub(r"<[^>]+>", " ", page.content.decode()).replace("\u00a0", " ")
    return " ".join(said.split())


def test_it_answers_within_twelve_statements_whatever_there_is(staff, acme):
    working(acme)
    for number in range(50):
        factories.node("worker", host=f"queue-{number}", report=REDUCED)
        recorded(
            tenant_id=acme.id,
            tenant="acme",
            outcome="failed",
            error=f"e{chr(65 + number % 26)}",
        )
    live.forget()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert staff.get(INDEX).status_code == 200
    asked = [
        one["sql"]
        for one in queries
        if "django_session" not in one["sql"] and "auth_user" not in one["sql"]
    ]
    assert len(asked) <= 12, "\n".join(asked)


def test_the_first_sentence_says_that_work_is_moving_and_what_is_reduced(staff, acme):
    working(acme)
    said = text(staff)
    moving = (
        r"Work is moving: the oldest waiting item is \d+ s old. 1 limit is reduced."
    )
    assert re.search(moving, said)
    assert (
        "Worker on queue-2 runs 8 items, not 12. Its pool of 12 connections serves 8."
        in said
    )
    master, standby, worker = Node.objects.order_by("host")
    assert f"app-1 pid {master.pid} Term 41" in said
    # Two processes of one host are told apart.
    assert f"queue-2 Reduced worker, pid {worker.pid}, 3" in said
    assert f"Standby app-2 , pid {standby.pid}, heartbeat" in said


def test_no_master_is_the_first_thing_said(staff, acme):
    working(acme)
    elect(Node.objects.get(host="app-1"), expires=timedelta(seconds=-5))
    said = text(staff)
    assert "No master: nothing is enqueued until a server node takes the lease." in said
    assert "2 server nodes alive, election due within" in said


def test_a_queue_without_a_worker_is_said_to_stand_still(staff, acme):
    working(acme)
    Node.objects.filter(kind="worker").update(status=Node.Status.STOPPED)
    assert "No worker is alive: 1 item waits." in text(staff)


def test_work_that_waits_for_too_long_is_said_to_be_behind(staff, acme):
    working(acme)
    WorkItem.objects.update(not_before=clock.now() - timedelta(minutes=20))
    assert "Work is behind: the oldest waiting item is 20 min old." in text(staff)


def test_a_retry_that_is_not_due_yet_is_not_late(staff, acme):
    working(acme)
    WorkItem.objects.update(not_before=clock.now() + timedelta(minutes=20))
    assert "Work is moving: what waits is not due yet." in text(staff)


def test_a_held_item_is_shown_with_what_to_do(staff, acme):
    working(acme)
    assert "held: release or drop" not in text(staff)
    WorkItem.objects.update(status=WorkItem.Status.HELD)
    assert "held: release or drop" in text(staff)


def test_counts_stop_where_a_page_would_wait(staff, acme, monkeypatch):
    monkeypatch.setattr(depth, "MOST", 2)
    for number in range(5):
        factories.item(
            acme, dedup_key=str(number), tenant_slug="acme", enqueued_at=clock.now()
        )
    recorded(tenant_id=acme.id)
    assert "waiting 2+" in text(staff)


def test_failures_are_grouped_by_handler_and_error(staff, acme):
    working(acme)
    for number in range(3):
        recorded(
            tenant_id=acme.id,
            tenant="acme",
            outcome="failed",
            error=f"refused by mail:{number}",
        )
    said = text(staff)
    assert said.count("refused by mail:") == 1
    assert "Failed 3 acme" in said


def test_nothing_failed_is_good_news_and_said(staff, acme):
    working(acme)
    assert "Nothing failed" in text(staff)


def test_a_members_page_shows_the_work_of_his_tenant_and_no_process(client, acme):
    granite = factories.tenant("granite")
    working(granite)
    recorded(
        tenant_id=granite.id,
        tenant="granite",
        outcome="failed",
        error="secret of granite",
    )
    member = factories.member(acme, role=Membership.Role.ADMINISTRATOR)
    member.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(member)
    factories.item(acme, tenant_slug="acme", enqueued_at=clock.now(), handler="mine")
    said = text(client)
    assert "1 item waits for you, 0 execute." in said
    for hidden in ("granite", "app-1", "queue-2", "Master", "Server Audit Logs"):
        assert hidden not in said


def test_a_new_installation_is_told_what_it_lacks(staff):
    said = text(staff)
    assert "Welcome to Millrace" in said
    assert "No worker has reported yet" in said
    assert "1 of 6 done" in said
    assert "Only looking around?" in said


def test_an_installation_that_has_run_once_is_not_new_even_if_it_is_idle_now(
    staff, acme
):
    recorded(tenant_id=acme.id, finished_at=clock.now() - timedelta(days=2))
    assert "Welcome" not in text(staff)


def test_a_pause_is_in_the_first_sentence_and_in_a_banner(staff, acme):
    working(acme)
    pauses.pause(scope="everything", reason="database move", who="op", origin="admin")
    live.refresh()
    said = text(staff)
    assert "1 pause is in force" in said
    assert "Everything is paused without an end: \u201c database move \u201d." in said


def test_a_change_is_told_by_its_title(staff, acme):
    working(acme)
    pauses.pause(scope="tenant", tenant=acme, reason="unpaid", who="op", origin="admin")
    assert "Tenant acme: paused by op" in text(staff)


def test_the_pages_end_with_all_pages_where_there_is_no_sidebar(staff):
    assert (
        f'<a href="{reverse("admin:nodes")}">Server Audit Logs</a>'
        in staff.get(INDEX).content.decode()
    )


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (
            "item:12 notifications.deliver acme",
            "Notification Handler for acme: cancelled",
        ),
        (
            "run:01a2 notifications.deliver acme",
            "Notification Handler for acme: cancelled",
        ),
        ("operation:7 repeat runs", "Bulk operation 7: cancelled"),
        ("item:", " for : cancelled"),
    ],
)
def test_what_operators_did_is_told_in_their_words(staff, subject, said):
    recorded(outcome="succeeded")
    ledger.change(who="olga", origin="admin", subject=subject, verb="cancelled")
    assert f"{said} by olga" in text(staff)


def test_jobs_are_counted_by_tier_with_what_is_reduced_of_them_and_why(staff, acme):
    working(acme)
    screening.pending(acme)
    screening.running(acme)
    screening.worker(
        caps={"total": 12},
        used={"total": 3},
        in_flight=1,
        reduced=[
            {"what": "total", "from": 12, "to": 3, "why": "DB pool of 10 serves 3"},
            {"what": "heavy", "from": 2, "to": 0, "why": "terraform is not on PATH"},
        ],
    )
    said = text(staff)
    assert "running in 3 slots" in said
    assert "1 running, 1 pending" in said
    assert "Job worker on app-1 runs 3 jobs, not 12. DB pool of 10 serves 3" in said
    assert (
        "Job worker on app-1 serves 0 of tier heavy, not 2. terraform is not on PATH"
        in said
    )
    assert "1 of 3 busy" in said


def test_jobs_that_wait_without_a_job_worker_are_a_warning(staff, acme):
    working(acme)
    screening.pending(acme)
    assert "No job worker has reported: jobs stay pending until one runs" in text(staff)


def test_a_tenants_member_sees_the_jobs_of_that_tenant(acme):
    screening.pending(factories.tenant("granite"))
    client = screens.signed_in(screens.staff(acme, "jobworker.view_job"))
    said = text(client)
    assert "0 pending" in said
    assert "1 pending" not in said
    assert "No job worker has reported" not in said
