"""Banners: what holds on every page until somebody ends it."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse

from audit import clock
from project import banners
from tests import factories
from workqueue import live, pauses, policy
from workqueue.models import Setting

pytestmark = pytest.mark.django_db

PAGES = (
    "index",
    "nodes",
    "ticks",
    "timetable",
    "auth_user_changelist",
    "runs",
    "items",
    "settings",
    "pauses",
    "changes",
)


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    live.forget()
    yield
    live.forget()


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(factories.superuser("operator"))
    return client


def pause(**values: Any) -> None:
    pauses.pause(
        **{
            "scope": "everything",
            "reason": "CHG-2231",
            "who": "op",
            "origin": "admin",
            **values,
        }
    )
    live.refresh()


def switch_off(why: str = "database move") -> None:
    policy.save({"START_WORKERS_ON_MASTER": False}, who="op", origin="admin", why=why)
    live.refresh()


@pytest.mark.parametrize("name", PAGES)
def test_a_pause_is_told_on_every_page_with_its_end_and_its_reason(name, staff):
    pause(until=clock.now() + timedelta(minutes=90))
    text = staff.get(reverse(f"admin:{name}")).content.decode().replace("\u00a0", " ")
    assert "Everything is paused" in text
    assert "for another 1 h 2" in text or "for another 1 h 30 min" in text
    assert "CHG-2231" in text
    assert "Resume\u2026" in text


@pytest.mark.parametrize("name", PAGES)
def test_workers_that_are_switched_off_are_told_on_every_page(name, staff):
    switch_off()
    text = staff.get(reverse(f"admin:{name}")).content.decode()
    assert "No background task runs." in text
    assert "database move" in text


def test_who_switched_workers_off_is_the_one_who_did_and_not_who_saved_last(staff):
    switch_off()
    policy.save(
        {"START_WORKERS_ON_MASTER": False, "WORKER_CONCURRENCY": 12},
        who="other",
        origin="admin",
        why="more",
    )
    live.refresh()
    text = staff.get(reverse("admin:ticks")).content.decode()
    assert "database move" in text
    assert "other" not in text


def test_a_value_that_got_in_by_sql_is_told_without_a_culprit(staff):
    Setting.objects.create(
        name="Worker Node Configuration",
        version=1,
        values={"START_WORKERS_ON_MASTER": False},
        at=clock.now(),
        who="",
        origin="",
        why="",
    )
    live.refresh()
    assert b"No background task runs." in staff.get(reverse("admin:ticks")).content


def test_a_pause_that_is_over_is_told_no_more(staff):
    pause(until=clock.now() + timedelta(seconds=30))
    with clock.at(clock.now() + timedelta(minutes=1)):
        assert banners.of(_request(None)) == []


def test_another_tenants_pause_is_nobody_elses_business():
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    pause(scope="tenant", tenant=acme)
    assert banners.of(_request(frozenset([granite.id]))) == []
    assert len(banners.of(_request(frozenset([acme.id])))) == 1


def test_many_pauses_are_counted_and_not_told_one_by_one(staff):
    for number in range(8):
        pause(scope="tenant", tenant=factories.tenant(f"t{number}"))
    text = staff.get(reverse("admin:ticks")).content.decode()
    assert text.count("is paused</strong>") == banners.MOST
    assert "3 more" in text


@pytest.mark.parametrize(
    "name",
    ["runs", "auth_user_add", "workqueue_tenant_changelist", "password_change"],
)
def test_it_is_told_once_on_pages_of_our_own_and_on_the_admins(staff, name):
    pause()
    text = staff.get(reverse(f"admin:{name}")).content.decode()
    assert text.count("is paused</strong>") == 1


def test_while_all_is_well_a_banner_costs_no_statement(django_assert_num_queries):
    live.refresh()
    request = _request(None)
    with django_assert_num_queries(0):
        assert banners.of(request) == []


def test_a_hostile_reason_is_shown_as_text(staff):
    pause(reason="<script>alert(1)</script>\u202e" + "x" * 300_000)
    text = staff.get(reverse("admin:ticks")).content.decode()
    assert "<script>alert(1)" not in text
    assert "\u202e" not in text


def _request(tenants: frozenset[int] | None) -> Any:
    request = RequestFactory().get("/")
    request.user = factories.superuser() if tenants is None else factories.user()
    request.tenants = tenants  # type: ignore[attr-defined]
    return request
