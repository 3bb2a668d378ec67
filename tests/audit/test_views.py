"""Scheduler Audit Logs and Changes: what they show, to whom, and for how many statements."""

import csv
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.http import urlencode

from audit import clock, export, keyset, ledger, sorting
from audit.models import SavedView
from tests import factories, screens
from tests.audit.conftest import recorded
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
    # Session, user, the bell; tenants to suggest, saved views; page, medians, late, attempts.
    # And what PostgreSQL needs to give up in time: a savepoint with a time limit and its end.
    with django_assert_num_queries(statements(9)):
        boss.get(RUNS)
    live.refresh()
    with django_assert_num_queries(statements(5)):
        boss.get(CHANGES)


def statements(count: int) -> int:
    return count + 4 if connection.vendor == "postgresql" else count


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


def test_every_list_has_at_most_fifteen_statements(boss: Client):
    acme = factories.tenant("acme")
    for number in range(60):
        screens.run(acme, outcome="failed" if number % 2 else "succeeded", error="x")
    for query in (
        "",
        "text=x",
        "sort=ran",
        "sort=enqueued&tenant=acme",
        "outcome=failed",
    ):
        live.refresh()
        with CaptureQueriesContext(connection) as said:
            boss.get(f"{RUNS}?{query}")
        # On its own a page begins and ends transactions: savepoints, and the end of a time
        # limit within one, are the test's.
        ours = ("SAVEPOINT", "'statement_timeout', '0'")
        counted = [q for q in said if not any(each in q["sql"] for each in ours)]
        assert len(counted) <= 15, (query, [q["sql"][:80] for q in counted])


def test_the_list_is_read_in_other_orders(boss: Client):
    acme, now = factories.tenant("acme"), clock.now()
    for name, ran, waited in (("a", 1, 9), ("b", 60, 5), ("c", 20, 2)):
        start = now - timedelta(seconds=ran)
        screens.run(
            acme, summary=f"run {name}", finished_at=now - timedelta(seconds=ord(name)),
            started_at=start - timedelta(seconds=ord(name)),
            claimed_at=start - timedelta(seconds=ord(name)),
            enqueued_at=start - timedelta(seconds=ord(name) + waited),
        )  # fmt: skip
    for sort, order in (
        ("", "abc"), ("oldest", "cba"), ("ran", "bca"), ("waited", "abc"),
        ("started", "acb"), ("enqueued", "acb"), ("nothing", "abc"),
    ):  # fmt: skip
        answer = boss.get(RUNS, {"sort": sort})
        shown = "".join(run.summary[-1] for run in answer.context["rows"])
        assert shown == order, sort
    html = text(boss.get(RUNS, {"sort": "ran", "outcome": "succeeded"}))
    assert "ran 1\u00a0min to 1\u00a0s" in html
    assert (
        'aria-sort="descending"><a href="?outcome=succeeded&amp;sort=ran">Ran ↓' in html
    )


def test_orders_that_no_index_has_say_how_far_back_they_reach(
    boss: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sorting, "LOOKED", 2)
    acme, now = factories.tenant("acme"), clock.now()
    for number in range(5):
        screens.run(acme, finished_at=now - timedelta(minutes=number))
    answer = boss.get(RUNS, {"sort": "ran"})
    assert "In this order: the newest 2 runs" in text(answer)
    assert len(answer.context["rows"]) == 3
    rest = boss.get(f"{RUNS}{answer.context['before_edge']}")
    assert len(rest.context["rows"]) == 2


def test_a_search_that_ran_out_of_time_says_so_and_can_be_gone_on_with(
    boss: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyset, "SIFT_MS", -1000)
    acme, now = factories.tenant("acme"), clock.now()
    for number in range(3):
        screens.run(
            acme, outcome="failed", error="needle" if number == 2 else "hay",
            finished_at=now - timedelta(minutes=number),
        )  # fmt: skip
    answer = boss.get(RUNS, {"text": "needle"})
    assert "Nothing found back to" in text(answer)
    assert "Search further back" in text(answer)
    further = boss.get(f"{RUNS}{answer.context['further']}")
    assert [run.error for run in further.context["rows"]] == ["needle"]
    assert further.context["searched_to"] is None


def test_a_view_is_saved_shown_to_its_owner_alone_and_removed(boss: Client):
    anna = screens.signed_in(factories.superuser("anna"))
    query = "outcome=failed&sort=ran&older=x&unknown=1"
    answer = boss.post(
        f"{RUNS}views/", {"name": " Slow  ones ", "query": query}, follow=True
    )
    assert answer.redirect_chain[-1][0] == f"{RUNS}?outcome=failed&sort=ran"
    assert 'aria-current="page">Slow ones</a>' in text(answer)
    assert "Save view" not in text(answer)
    assert "Slow ones" not in text(anna.get(RUNS))
    view = SavedView.objects.get()
    assert anna.post(f"{RUNS}views/{view.pk}/remove/").status_code == 404
    assert boss.get(f"{RUNS}views/{view.pk}/remove/").status_code == 405
    boss.post(f"{RUNS}views/{view.pk}/remove/")
    assert not SavedView.objects.exists()


def test_a_view_that_cannot_be_saved_says_why(boss: Client):
    for values, said in (
        ({"name": "", "query": "outcome=failed"}, "has 1 to 60 characters"),
        ({"name": "x" * 61, "query": "outcome=failed"}, "has 1 to 60 characters"),
        ({"name": "x", "query": "nothing=known"}, "nothing to save"),
        ({"name": "x", "query": "text=" + "y" * 3000}, "too long to be saved"),
        ({"name": "\x00", "query": "text=\x00"}, "is saved"),
    ):
        answer = boss.post(f"{RUNS}views/", values, follow=True)
        assert said in text(answer)
    anna = screens.signed_in(screens.staff(factories.tenant("acme")))
    assert (
        anna.post(f"{RUNS}views/", {"name": "x", "query": "text=x"}).status_code == 403
    )
    assert boss.post("/admin/audit/nothing/views/", {}).status_code == 404


def test_everything_that_matches_is_exported_and_nothing_of_other_tenants(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(export, "AT_ONCE", 2)
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    for number in range(5):
        screens.run(
            acme, outcome="failed", error=f"=cmd|{number}", details={"n": number}
        )
        screens.run(granite, outcome="failed", error="of granite")
    screens.run(acme)
    anna = screens.signed_in(screens.staff(acme, "audit.view_run", "audit.export"))
    answer = anna.get(f"{RUNS}export/jsonl/", {"outcome": "failed", "text": "cmd"})
    lines = [json.loads(line) for line in exported(answer).splitlines()]
    assert {line["error"] for line in lines} == {f"=cmd|{n}" for n in range(5)}
    assert lines[0]["ran_ms"] == 214
    assert lines[0]["finished_at"].endswith("Z")
    assert {line["details"]["n"] for line in lines} == set(range(5))
    answer = anna.get(f"{RUNS}export/csv/")
    rows = list(csv.DictReader(exported(answer).removeprefix("\ufeff").splitlines()))
    assert {row["tenant"] for row in rows} == {"acme"}
    # What a spreadsheet would run is text.
    assert sorted(row["error"] for row in rows)[-1] == "'=cmd|4"
    assert "attachment" in answer["Content-Disposition"]
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "asked", [{"outcome": "banana"}, {"since": "someday"}, {"ran_over": "quickly"}]
)
def test_what_cannot_be_read_exports_nothing_and_leads_to_the_list_that_says_so(
    boss: Client, asked: dict[str, str]
):
    screens.run(factories.tenant("acme"))
    answer = boss.get(f"{RUNS}export/jsonl/", asked, follow=True)
    assert answer.redirect_chain == [(f"{RUNS}?{urlencode(asked)}", 302)]
    assert b"was not filtered" in answer.content


def test_changes_are_exported_too(boss: Client):
    ledger.change(
        who="anna", origin="command", subject="pause:x", verb="paused",
        old={"a": 1}, new={"a": 2}, why="CHG-1",
    )  # fmt: skip
    answer = boss.get(f"{CHANGES}export/jsonl/", {"who": "anna"})
    [line] = [json.loads(line) for line in exported(answer).splitlines()]
    assert (line["old"], line["new"], line["why"]) == ({"a": 1}, {"a": 2}, "CHG-1")
    assert boss.get(f"{CHANGES}export/xml/").status_code == 404
    anna = screens.signed_in(screens.staff(factories.tenant("acme")))
    assert anna.get(f"{CHANGES}export/csv/").status_code == 403


def exported(response: Any) -> str:
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode()


def test_runs_of_items_and_of_jobs_stand_in_lists_of_their_own(boss: Client):
    recorded(handler="tests.noop", kind="item")
    recorded(handler="packer_build", kind="job")
    items, jobs = text(boss.get(RUNS)), text(boss.get("/admin/audit/job_logs/"))
    assert "packer_build" in jobs
    assert "packer_build" not in items
    assert "tests.noop" not in jobs
    assert "1 job matches" in jobs.replace("\u00a0", " ")
    response = boss.get("/admin/audit/job_logs/export/jsonl/")
    (line,) = b"".join(response.streaming_content).decode().splitlines()
    assert '"handler": "packer_build"' in line


def test_job_logs_without_a_job_say_where_jobs_are(boss: Client):
    html = text(boss.get("/admin/audit/job_logs/"))
    assert "No job has ended yet" in html
    assert "/admin/jobs/" in html
