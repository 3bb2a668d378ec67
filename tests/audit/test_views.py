"""Scheduler Audit Logs and Changes: what they show, to whom, and for how many statements."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from audit import clock, ledger
from tests import factories, screens
from tests.screens import HOSTILE, LIVE
from workqueue import live

pytestmark = pytest.mark.django_db
RUNS, CHANGES = "/admin/audit/runs/", "/admin/audit/changes/"


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


def text(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_the_addresses_are_those_of_the_menu():
    assert (reverse("admin:runs"), reverse("admin:changes")) == (RUNS, CHANGES)


def test_a_row_says_what_happened_and_leads_to_its_run(boss: Client):
    acme = factories.tenant("acme")
    run = screens.run(
        acme,
        outcome="failed",
        error="550 5.1.1 no such user",
        started_at=clock.now() - timedelta(seconds=5),
    )
    html = text(boss.get(RUNS))
    assert reverse("admin:run", args=[run.id]) in html
    assert "Failed" in html
    assert '<span class="err">550 5.1.1 no such user</span>' in html
    assert "1 run matches" in html
    assert "style=" not in html


def test_waited_and_ran_are_two_columns(boss: Client):
    now = clock.now()
    screens.run(
        factories.tenant("acme"), enqueued_at=now - timedelta(seconds=70), claimed_at=now - timedelta(seconds=40),
        started_at=now - timedelta(seconds=40), finished_at=now,
    )  # fmt: skip
    html = text(boss.get(RUNS))
    assert 'data-label="Waited" class="n">30\u00a0s<' in html
    assert 'data-label="Ran" class="n">40\u00a0s<' in html


def test_a_late_result_and_a_later_attempt_stand_below_the_row(boss: Client):
    acme = factories.tenant("acme")
    run = screens.run(acme, outcome="abandoned", error="queue-2 was silent", item_id=7)
    screens.run(acme, item_id=7, attempt=2)
    late = ledger.LateRecord(
        claim_id=run.id, node_id=None, node="queue-2, 1", tenant_id=acme.pk, tenant="acme", handler=run.handler,
        started_at=run.started_at, finished_at=clock.now(), outcome="succeeded",
    )  # fmt: skip
    ledger.record_late(late)
    html = text(boss.get(RUNS))
    assert "Its result came late, at" in html
    assert "attempt 2</a> succeeded" in html


@pytest.mark.parametrize("rows", [5, 50])
def test_a_page_costs_the_same_for_any_number_of_rows(
    boss: Client, rows: int, django_assert_num_queries
):
    acme = factories.tenant("acme")
    for number in range(rows):
        outcome = "failed" if number % 2 else "succeeded"
        screens.run(
            acme, handler=f"a.{number % 3}", outcome=outcome, item_id=number + 1
        )
        ledger.change(who="anna", origin="admin", subject=str(number), verb="changed")
    boss.get(RUNS)
    live.refresh()  # what banners are made of is read every 5 s
    # Session, user, the bell; tenants to suggest; page, medians, late, attempts; count. And what
    # PostgreSQL needs to give up in time: two savepoints with a time limit and its end.
    with django_assert_num_queries(statements(9)):
        boss.get(RUNS)
    live.refresh()
    with django_assert_num_queries(statements(5)):
        boss.get(CHANGES)


def statements(count: int) -> int:
    return count + 8 if connection.vendor == "postgresql" else count


def test_a_reader_sees_the_runs_and_changes_of_his_tenants_alone():
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    for tenant in (acme, granite):
        screens.run(tenant, summary=f"seen in {tenant.slug}")
        ledger.change(
            who="x",
            origin="admin",
            subject=f"of {tenant.slug}",
            verb="changed",
            tenant_id=tenant.pk,
        )
    ledger.change(who="x", origin="admin", subject="of the platform", verb="changed")
    anna = screens.signed_in(screens.staff(acme, "audit.view_run", "audit.view_change"))
    html = text(anna.get(RUNS)) + text(anna.get(CHANGES))
    assert "seen in acme" in html
    assert "of acme" in html
    assert "granite" not in html
    assert "of the platform" not in html
    assert "seen in granite" not in text(anna.get(RUNS, {"tenant": "granite"}))


def test_without_the_permission_the_pages_are_refused():
    anna = screens.signed_in(screens.staff(factories.tenant("acme")))
    assert [anna.get(address).status_code for address in (RUNS, CHANGES)] == [403, 403]
    assert [Client().get(address).status_code for address in (RUNS, CHANGES)] == [
        302,
        302,
    ]
    assert anna.post(RUNS).status_code == 405


def test_an_empty_list_says_why_and_what_is_nearest(boss: Client):
    assert "No run has finished yet" in text(boss.get(RUNS))
    screens.run(factories.tenant("acme"))
    html = text(boss.get(RUNS, {"text": "nothing like it", "ran_over": "1 h"}))
    assert "No run matches these 2 filters" in html
    assert "The newest run of all is that of acme" in html
    assert "Remove “Ran over 1\u00a0h”" in html


@pytest.mark.parametrize("value", ["\x00", "a\x00b", HOSTILE, "%", "' OR 1=1"])
def test_the_search_box_takes_anything(boss: Client, value: str):
    screens.run(factories.tenant("acme"))
    for address in (RUNS, CHANGES):
        html = text(boss.get(address, {"text": value}))
        assert not [mark for mark in LIVE if mark in html and "<" in mark]


def test_a_value_that_cannot_be_read_is_refused_with_a_sentence(boss: Client):
    screens.run(factories.tenant("acme"))
    html = text(boss.get(RUNS, {"since": "<script>alert(1)"}))
    assert "is no moment. Write 24 h or 7 d" in html
    assert "<script>alert(1)" not in html
    assert "1 run matches" in html


def test_hostile_text_is_text_in_both_lists(boss: Client):
    tenant = factories.tenant("acme")
    screens.run(
        tenant,
        tenant=HOSTILE[:64],
        handler=HOSTILE[:64],
        outcome="failed",
        error=HOSTILE,
        summary=HOSTILE,
        node=HOSTILE,
    )
    ledger.change(
        who=HOSTILE[:150],
        origin="admin",
        subject=HOSTILE,
        verb="x",
        old=HOSTILE,
        new={HOSTILE: HOSTILE},
        why=HOSTILE,
    )
    for address in (RUNS, CHANGES):
        html = text(boss.get(address))
        assert not [mark for mark in LIVE if mark in html]
        assert "&lt;script&gt;alert(1)" in html


def test_older_and_newer_go_through_all_rows(boss: Client):
    acme = factories.tenant("acme")
    now = clock.now()
    for number in range(60):
        screens.run(
            acme,
            summary=f"number {number:02}",
            finished_at=now - timedelta(seconds=number),
        )
    first = boss.get(RUNS)
    assert "number 49" in text(first)
    assert "number 50" not in text(first)
    second = boss.get(f"{RUNS}{first.context['older']}")
    assert "number 50" in text(second)
    assert "number 59" in text(second)
    assert second.context["older"] == ""
    assert "number 00" in text(boss.get(f"{RUNS}{second.context['newer']}"))


def test_a_ready_made_view_is_marked_while_it_is_shown(boss: Client):
    html = text(boss.get(f"{RUNS}?outcome=partial&outcome=failed&outcome=abandoned"))
    assert 'aria-current="page">Failures</a>' in html
