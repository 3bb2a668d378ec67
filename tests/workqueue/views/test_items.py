"""Items: what waits and why, and what an operator does about it, row by row."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import Change, Run
from tests import factories, screens
from tests.screens import HOSTILE, LIVE
from workqueue import live
from workqueue.models import Membership, Tenant, WorkItem

pytestmark = pytest.mark.django_db
ITEMS, ACT = "/admin/items/", "/admin/items/act/"
RIGHTS = (
    "workqueue.view_workitem",
    "workqueue.cancel_item",
    "workqueue.retry_item",
    "workqueue.drop_item",
)


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def text(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_the_list_says_of_each_item_why_it_is_where_it_is(boss: Client, acme: Tenant):
    screens.pending(acme)
    screens.held(factories.tenant("granite"))
    screens.executing(factories.tenant("fjord"))
    html = text(boss.get(ITEMS))
    assert "no worker process is running" in html
    assert "Held: 3 workers stopped while running it." in html
    assert "Executing on queue-1, 31" in html
    for tab in ("Waiting 1", "Executing 1", "Held 1"):
        assert f">{tab}</a>" in html
    assert "granite" in text(boss.get(ITEMS, {"status": "held"}))
    assert (
        "fjord"
        not in text(boss.get(ITEMS, {"status": "held"}))
        .partition("<tbody>")[2]
        .partition("</tbody>")[0]
    )


def test_pages_of_a_long_queue_follow_each_other_and_are_read_by_key(
    boss: Client, acme: Tenant
):
    made = [screens.pending(acme, dedup_key=f"{n}").pk for n in range(120)]
    seen: list[str] = []
    address = ITEMS
    for _ in range(3):
        with CaptureQueriesContext(connection) as asked:
            html = text(boss.get(address))
        seen += re.findall(r'name="item" value="(\d+)"', html)
        older = re.search(r'href="([^"]*older=[^"]*)"', html)
        address = ITEMS + (unescape(older[1]) if older else "")
        # No index has the time, and to sort 200,000 items took a second.
        [order] = [
            query["sql"].rpartition("ORDER BY")[2]
            for query in asked.captured_queries
            if '"workqueue_workitem"."last_error"' in query["sql"]
        ]
        assert order.strip() == '"workqueue_workitem"."id" DESC LIMIT 51'
    assert [int(pk) for pk in seen] == made[::-1]


def test_an_empty_queue_is_good_news(boss: Client):
    assert "Nothing waits, and nothing executes" in text(boss.get(ITEMS))


def test_an_items_page_says_why_and_has_its_verbs(boss: Client, acme: Tenant):
    item = screens.held(acme, last_error="its worker stopped reporting")
    screens.run(
        acme, item_id=item.pk, attempt=2, outcome="abandoned", error="silent for 61 s"
    )
    html = text(boss.get(f"{ITEMS}{item.pk}/"))
    for said in (
        "Why is it held?",
        "its worker stopped reporting",
        "silent for 61 s",
        "Release…",
        "Drop…",
    ):
        assert said in html
    assert "Cancel…" not in html


def test_the_page_of_an_item_that_has_ended_leads_to_its_run(
    boss: Client, acme: Tenant
):
    run = screens.run(acme, item_id=77, outcome="failed")
    assert boss.get(f"{ITEMS}77/")["Location"] == f"/admin/run/{run.id}/"
    assert boss.get(f"{ITEMS}78/").status_code == 404


@pytest.mark.parametrize("verb", ["cancel", "release", "drop"])
def test_a_verb_asks_first_and_says_what_happens_and_what_stays(
    boss: Client, acme: Tenant, verb: str
):
    item = screens.pending(acme) if verb == "cancel" else screens.held(acme)
    html = text(boss.get(ACT, {"verb": verb, "item": item.pk}))
    assert "Why" in html
    assert 'method="post"' in html
    assert WorkItem.objects.filter(pk=item.pk).exists()
    assert not Change.objects.exists()


def test_nothing_is_done_without_a_reason(boss: Client, acme: Tenant):
    item = screens.pending(acme)
    for why in ("", "   ", "x" * 501):
        response = boss.post(ACT, {"verb": "cancel", "item": item.pk, "why": why})
        assert response.status_code == 400
    assert WorkItem.objects.filter(pk=item.pk, status="pending").exists()


def test_cancelling_records_the_run_and_the_change(boss: Client, acme: Tenant):
    waiting, running = screens.pending(acme), screens.executing(factories.tenant())
    response = boss.post(
        ACT,
        {
            "verb": "cancel",
            "item": [waiting.pk, running.pk],
            "why": "rules were half saved",
        },
    )
    assert response["Location"] == ITEMS
    assert not WorkItem.objects.exists()
    assert {run.outcome for run in Run.objects.all()} == {"cancelled"}
    assert {
        (change.who, change.origin, change.why) for change in Change.objects.all()
    } == {("boss", "admin", "rules were half saved")}


def test_retrying_and_dropping_are_for_held_items(boss: Client, acme: Tenant):
    one, two = screens.held(acme), screens.held(factories.tenant())
    boss.post(ACT, {"verb": "release", "item": one.pk, "why": "mended"})
    boss.post(ACT, {"verb": "drop", "item": two.pk, "why": "gone"})
    one.refresh_from_db()
    assert (one.status, one.recoveries) == ("pending", 0)
    assert not WorkItem.objects.filter(pk=two.pk).exists()


def test_rows_that_are_refused_are_told_apart_and_hold_up_nobody(
    boss: Client, acme: Tenant
):
    held, waiting = screens.held(acme), screens.pending(factories.tenant())
    html = text(
        boss.post(ACT, {"verb": "drop", "item": [held.pk, waiting.pk], "why": "gone"})
    )
    assert "1 of 2\u00a0items done" in html
    assert "it is not held: cancel it instead" in html
    assert list(WorkItem.objects.all()) == [waiting]


@pytest.mark.parametrize("data", [{}, {"verb": "explode", "item": 1}, {"verb": ""}])
def test_an_unknown_verb_is_404(boss: Client, data: dict[str, Any]):
    assert boss.get(ACT, data).status_code == 404
    assert boss.post(ACT, data).status_code == 404


@pytest.mark.parametrize("item", ["", "x", "9" * 30, "-1", "\x00"])
def test_an_item_that_is_none_is_no_error(boss: Client, item: str):
    assert boss.get(ACT, {"verb": "cancel", "item": item}).status_code == 302
    assert (
        boss.post(ACT, {"verb": "cancel", "item": item, "why": "x"}).status_code == 302
    )


def test_a_reader_sees_and_ends_the_items_of_his_tenant_alone(acme: Tenant):
    granite = factories.tenant("granite")
    mine, foreign = screens.pending(acme), screens.pending(granite)
    anna = screens.signed_in(screens.staff(acme, *RIGHTS))
    html = text(anna.get(ITEMS))
    assert "acme" in html
    assert "granite" not in html
    assert anna.get(f"{ITEMS}{foreign.pk}/").status_code == 404
    assert "granite" not in text(
        anna.get(ACT, {"verb": "cancel", "item": [mine.pk, foreign.pk]})
    )
    anna.post(ACT, {"verb": "cancel", "item": [mine.pk, foreign.pk], "why": "x"})
    assert list(WorkItem.objects.all()) == [foreign]


def test_the_server_refuses_who_lacks_the_permission_or_the_role(acme: Tenant):
    item = screens.pending(acme)
    looker = screens.signed_in(screens.staff(acme, RIGHTS[0]))
    viewer = screens.signed_in(
        screens.staff(acme, *RIGHTS, role=Membership.Role.VIEWER)
    )
    for client in (looker, viewer):
        html = text(client.get(ITEMS))
        assert "checkbox" not in html.partition("<tbody>")[2].partition("</tbody>")[0]
        assert "Cancel…" not in text(client.get(f"{ITEMS}{item.pk}/"))
        assert client.get(ACT, {"verb": "cancel", "item": item.pk}).status_code == 403
        assert (
            client.post(
                ACT, {"verb": "cancel", "item": item.pk, "why": "x"}
            ).status_code
            == 403
        )
    dropper = screens.signed_in(screens.staff(acme, *RIGHTS[:2]))
    assert (
        dropper.post(ACT, {"verb": "drop", "item": item.pk, "why": "x"}).status_code
        == 403
    )
    assert screens.signed_in(screens.staff(acme)).get(ITEMS).status_code == 403
    assert Client().get(ITEMS).status_code == 302
    assert WorkItem.objects.filter(pk=item.pk).exists()


def test_a_post_needs_its_token(acme: Tenant):
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.superuser())
    item = screens.pending(acme)
    assert (
        client.post(ACT, {"verb": "cancel", "item": item.pk, "why": "x"}).status_code
        == 403
    )


def test_hostile_text_is_text_on_every_page_of_an_item(boss: Client, acme: Tenant):
    item = screens.held(
        acme,
        handler=HOSTILE[:64],
        tenant_slug=HOSTILE[:64],
        dedup_key=HOSTILE,
        last_error=HOSTILE,
        held_reason=HOSTILE,
        node=HOSTILE,
    )
    for address in (ITEMS, f"{ITEMS}{item.pk}/", f"{ACT}?verb=drop&item={item.pk}"):
        html = text(boss.get(address))
        assert not [
            html[max(html.index(mark) - 60, 0) :][:100] for mark in LIVE if mark in html
        ]


@pytest.mark.parametrize("rows", [2, 50])
def test_a_page_costs_the_same_for_any_number_of_items(
    boss: Client, rows: int, django_assert_num_queries
):
    for _ in range(rows):
        screens.pending(factories.tenant())
    boss.get(ITEMS)
    # Session, user, the bell; page; what is in force and the workers; tenants to
    # suggest; one count of all states. PostgreSQL: the page has a time limit.
    with django_assert_num_queries(8 + (4 if connection.vendor == "postgresql" else 0)):
        boss.get(ITEMS)
    live.forget()
