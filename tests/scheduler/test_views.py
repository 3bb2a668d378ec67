"""The pages of the platform's staff: fixed costs, no door for others, text as text."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from audit import clock
from audit.models import NodeEvent
from scheduler.models import Schedule, Tick
from tests import factories
from tests.audit.conftest import recorded
from tests.scheduler.timetable_for_tests import row
from workqueue import live
from workqueue.models import Membership, Node

pytestmark = pytest.mark.django_db

PAGES = ("nodes", "ticks", "timetable")
HOSTILE = "<script>alert(1)</script>\u202eevil"


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser in which the platform's superuser is signed in."""
    client.force_login(factories.superuser("operator"))
    return client


@pytest.fixture
def fifty(timetable: Any) -> None:
    """Fifty handlers, processes, ticks and runs."""
    now = clock.now()
    timetable(*(row(f"h{number}") for number in range(50)))
    for number in range(50):
        node = factories.node(
            "server" if number % 2 else "worker", host=f"host-{number}"
        )
        NodeEvent.objects.create(
            node_id=node.id,
            node=str(node),
            kind="server",
            type="elected",
            term=number + 1,
            at=now,
        )
        Tick.objects.create(
            handler=f"h{number}",
            trigger="slot",
            slot=now,
            at=now,
            term=1,
            enqueued=number,
        )
        recorded(handler=f"h{number}")
    live.refresh()


# Session, user, and: lease; processes; stopped ones; terms (2) | page and count, on
# PostgreSQL each within a transaction of its own | schedules, runs, executing items.
@pytest.mark.parametrize(
    ("name", "most"), [("nodes", 8), ("ticks", 14), ("timetable", 6)]
)
def test_a_page_of_fifty_rows_costs_a_fixed_number_of_statements(
    name, most, fifty, staff, django_assert_max_num_queries
):
    with django_assert_max_num_queries(most):
        response = staff.get(reverse(f"admin:{name}"))
    assert response.status_code == 200
    assert response.content.count(b"<tr") >= 50


@pytest.mark.parametrize("name", PAGES)
def test_a_tenants_staff_is_told_that_there_is_no_such_page(name, timetable, client):
    client.force_login(
        factories.member(factories.tenant("acme"), role=Membership.Role.ADMINISTRATOR)
    )
    assert client.get(reverse(f"admin:{name}")).status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_a_stranger_is_asked_to_sign_in(name, timetable, client):
    response = client.get(reverse(f"admin:{name}"))
    assert response.status_code == 302
    assert reverse("admin:login") in response["Location"]


@pytest.mark.parametrize("name", PAGES)
def test_staff_of_the_platform_without_the_permission_is_refused(
    name, timetable, client
):
    client.force_login(factories.member(factories.platform()))
    assert client.get(reverse(f"admin:{name}")).status_code == 403


@pytest.mark.parametrize("name", PAGES)
def test_an_empty_installation_is_told_what_is_missing(name, timetable, staff):
    text = staff.get(reverse(f"admin:{name}")).content.decode()
    assert {
        "nodes": "No process is alive",
        "ticks": "No tick yet",
        "timetable": "The timetable is empty",
    }[name] in text


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_a_page_that_is_read_takes_no_write(name, method, timetable, staff):
    assert getattr(staff, method)(reverse(f"admin:{name}")).status_code == 405


def test_hostile_names_are_shown_as_text(timetable, staff):
    now = clock.now()
    node = factories.node("server", host=HOSTILE, version="\u202e1")
    Node.objects.filter(pk=node.pk).update(
        report={"in_flight": HOSTILE, HOSTILE: "x" * 1_000_000}
    )
    NodeEvent.objects.create(
        node_id=node.id,
        node=HOSTILE,
        kind="server",
        type="elected",
        term=1,
        at=now,
        text=HOSTILE + "x" * 1_000_000,
    )
    Tick.objects.create(
        handler=HOSTILE[:60],
        trigger="operator",
        slot=now,
        at=now,
        term=1,
        who=HOSTILE,
        why=HOSTILE,
    )
    timetable(row("plain"))
    Schedule.objects.create(
        key="plain", since=now, problem=HOSTILE, cadence=HOSTILE[:60], cadence_at=now
    )
    for address in (
        reverse("admin:nodes"),
        reverse("admin:node", args=[node.id]),
        reverse("admin:ticks"),
        reverse("admin:timetable_row", args=["plain"]),
    ):
        text = staff.get(address).content.decode()
        assert "<script>alert(1)" not in text, address
        assert "\u202e" not in text, address
        assert "alert(1)" in text, address
        assert len(text) < 300_000, address


@pytest.mark.sqlite
def test_a_nul_that_only_sqlite_stores_is_shown_as_text(timetable, staff):
    factories.node("server", host="a\0b")
    assert "a[U+0000]b" in staff.get(reverse("admin:nodes")).content.decode()


def test_a_node_that_ended_long_ago_still_shows_its_log(timetable, staff):
    gone = uuid4()
    NodeEvent.objects.create(
        node_id=gone,
        node="app-9, 1",
        kind="server",
        type="stopped",
        at=clock.now(),
        text="SIGTERM",
    )
    text = staff.get(reverse("admin:node", args=[gone])).content.decode()
    assert "app-9" in text
    assert "SIGTERM" in text


def test_processes_of_one_host_are_told_apart_by_kind_and_pid(timetable, staff):
    pairs = [("server", 21), ("server", 22), ("worker", 23), ("worker", 24)]
    nodes = [factories.node(kind, host="app-1", pid=pid) for kind, pid in pairs]
    listed = staff.get(reverse("admin:nodes")).content.decode()
    for (kind, pid), node in zip(pairs, nodes, strict=True):
        assert (
            f'Execution Logs<span class="visually-hidden"> of app-1, pid {pid}'
            in listed
        )
        own = staff.get(reverse("admin:node", args=[node.id])).content.decode()
        assert f"Execution logs of app-1, {pid}, {kind}" in own


def test_a_node_that_never_was_does_not_exist(timetable, staff):
    assert staff.get(reverse("admin:node", args=[uuid4()])).status_code == 404


def test_stopped_nodes_are_shown_on_demand(timetable, staff):
    factories.node(
        "worker", host="gone-1", status=Node.Status.STOPPED, stopped_at=clock.now()
    )
    address = reverse("admin:nodes")
    assert b"gone-1" not in staff.get(address).content
    assert b"gone-1" in staff.get(address, {"stopped": "1"}).content


def test_an_execution_log_goes_on_where_its_page_ends(timetable, staff):
    node, now = factories.node("server"), clock.now()
    for number in range(60):
        NodeEvent.objects.create(
            node_id=node.id,
            node="n",
            kind="server",
            type="note",
            at=now - timedelta(seconds=number),
            text=f"entry {number}.",
        )
    address = reverse("admin:node", args=[node.id])
    first = staff.get(address)
    second = staff.get(address, {"before": first.context_data["older"]})
    assert "entry 49." in first.content.decode()
    assert "entry 50." not in first.content.decode()
    assert "entry 50." in second.content.decode()
    assert "entry 49." not in second.content.decode()


def test_a_row_of_the_timetable_is_opened_and_one_that_is_not_there_is_not(
    timetable, staff
):
    timetable(row("plain", purpose="Hands events on."))
    assert (
        b"Hands events on."
        in staff.get(reverse("admin:timetable_row", args=["plain"])).content
    )
    assert staff.get(reverse("admin:timetable_row", args=["gone"])).status_code == 404


def test_an_odd_question_is_answered_with_the_page(timetable, staff):
    timetable(row("plain"))
    for name, query in [
        ("nodes", {"span": "9y", "stopped": "maybe"}),
        ("ticks", {"older": "x_y", "newer": "\0", "term": "many"}),
        ("timetable", {"text": "\0" * 500, "show": "<b>"}),
    ]:
        assert staff.get(reverse(f"admin:{name}"), query).status_code == 200
