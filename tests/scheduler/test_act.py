"""Change a cadence, run now: asked first, done by POST alone, and recorded."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from audit.models import Change
from scheduler.models import Schedule
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue import live, pauses
from workqueue.models import Membership

pytestmark = pytest.mark.django_db

RUN = reverse("admin:timetable_run", args=["plain"])
CADENCE = reverse("admin:timetable_cadence", args=["plain"])


@pytest.fixture
def staff(client: Client, timetable: Any) -> Client:
    """The platform's superuser, and a row to act on."""
    timetable(row("plain", cadence="15m"))
    client.force_login(factories.superuser("operator"))
    return client


def test_looking_at_the_question_changes_nothing(staff):
    for address in (RUN, CADENCE):
        assert staff.get(address).status_code == 200
    assert not Schedule.objects.exists()
    assert not Change.objects.exists()


def test_run_now_is_asked_for_with_a_reason_and_recorded(staff):
    response = staff.post(RUN, {"why": "after the new framework"})
    assert response.status_code == 302
    schedule = Schedule.objects.get()
    assert (schedule.run_requested_by, schedule.run_requested_why) == (
        "operator",
        "after the new framework",
    )
    change = Change.objects.get()
    assert (change.subject, change.verb, change.who, change.origin) == (
        "handler:plain",
        "run now",
        "operator",
        "admin",
    )


def test_run_now_without_a_reason_is_refused_beside_the_field(staff):
    response = staff.post(RUN, {"why": " "})
    assert response.status_code == 400
    assert b"Say why: the next operator reads it." in response.content
    assert not Schedule.objects.exists()


def test_run_now_of_a_paused_handler_says_that_it_waits(staff):
    pauses.pause(
        scope="handler", handler="plain", reason="upgrade", who="op", origin="admin"
    )
    live.refresh()
    assert (
        "What is enqueued now waits until the pause ends."
        in staff.get(RUN).content.decode()
    )
    assert staff.post(RUN, {"why": "all the same"}).status_code == 302
    assert Schedule.objects.get().run_requested_at is not None


def test_a_cadence_is_changed_and_taken_back(staff):
    staff.post(CADENCE, {"cadence": "20m", "why": "less load"})
    assert Schedule.objects.get().cadence == "20m"
    staff.post(CADENCE, {"cadence": "", "why": "back to the default"})
    assert Schedule.objects.get().cadence == ""
    assert [(change.old, change.new) for change in Change.objects.order_by("id")] == [
        ("15m", "20m"),
        ("20m", "15m"),
    ]


def test_a_cadence_that_the_scheduler_refuses_is_refused_with_its_sentence(staff):
    response = staff.post(CADENCE, {"cadence": "1s", "why": "fast"})
    assert response.status_code == 400
    assert "Enter 10s or more" in response.content.decode()


def test_a_cadence_under_10_s_is_asked_once_more_with_what_it_costs(timetable, client):
    timetable(row("probed", cadence="15m"))
    client.force_login(factories.superuser("operator"))
    for number in range(12):
        factories.tenant(f"tenant-{number}")
    address = reverse("admin:timetable_cadence", args=["probed"])
    said = client.get(address).content.decode()
    assert "15m is at most 1,152\N{NO-BREAK SPACE}runs a day with your 12" in said
    said = client.post(address, {"cadence": "1s", "why": "wave"}).content.decode()
    assert "enqueues for those alone" in said
    assert "1s is at most 12 items/s, 1,036,800\N{NO-BREAK SPACE}runs a day" in said
    assert not Schedule.objects.exists()
    # An answer about another cadence is none.
    client.post(address, {"cadence": "2s", "why": "wave", "sure": "1s"})
    assert not Schedule.objects.exists()
    client.post(address, {"cadence": "1s", "why": "wave", "sure": "1s"})
    assert Schedule.objects.get().cadence == "1s"


@pytest.mark.parametrize("address", [RUN, CADENCE])
def test_a_viewer_of_the_platform_changes_nothing_whatever_his_permissions(
    address, timetable, client
):
    timetable(row("plain"))
    viewer = factories.member(factories.platform(), role=Membership.Role.VIEWER)
    viewer.user_permissions.set(
        Permission.objects.filter(content_type__app_label="scheduler")
    )
    client.force_login(viewer)
    assert client.get(address).status_code == 403
    assert client.post(address, {"why": "x", "cadence": "20m"}).status_code == 403
    assert not Schedule.objects.exists()


@pytest.mark.parametrize("address", [RUN, CADENCE])
def test_a_tenants_administrator_is_told_that_there_is_no_such_page(
    address, timetable, client
):
    timetable(row("plain"))
    client.force_login(
        factories.member(factories.tenant("acme"), role=Membership.Role.ADMINISTRATOR)
    )
    assert client.post(address, {"why": "x"}).status_code == 404


def test_an_operator_of_the_platform_with_the_permission_may(timetable, client):
    timetable(row("plain"))
    operator = factories.member(factories.platform(), role=Membership.Role.OPERATOR)
    operator.user_permissions.set(
        Permission.objects.filter(
            codename__in=["run_schedule", "change_cadence", "view_schedule"]
        )
    )
    client.force_login(operator)
    assert client.post(RUN, {"why": "x"}).status_code == 302
    assert b"Run now" in client.get(reverse("admin:timetable")).content


def test_somebody_who_may_only_look_is_shown_no_button(timetable, client):
    timetable(row("plain"))
    viewer = factories.member(factories.platform(), role=Membership.Role.VIEWER)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_schedule"))
    client.force_login(viewer)
    text = client.get(reverse("admin:timetable_row", args=["plain"])).content
    assert b"Every" in text
    for button in (b"Run now", b"Pause\xe2\x80\xa6", b"Change cadence"):
        assert button not in text


def test_a_form_from_elsewhere_is_refused(timetable):
    timetable(row("plain"))
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.superuser())
    assert client.post(RUN, {"why": "x"}).status_code == 403
    assert not Schedule.objects.exists()
