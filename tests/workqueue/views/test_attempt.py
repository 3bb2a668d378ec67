"""The page of a claim: live and finished, its transcript, and nobody else's."""

import json
import logging
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from audit import clock, ledger, transcript
from audit.ledger import LateRecord
from audit.transcript import LineRow
from tests import factories, screens
from tests.screens import HOSTILE, LIVE
from workqueue import live
from workqueue.models import Tenant, WorkItem

pytestmark = pytest.mark.django_db
ALL = ("", "lines/", "transcript/")


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def lines(
    claim_id: Any, *texts: str, first: int = 1, level: int = logging.INFO
) -> None:
    at = clock.now()
    transcript.store(
        [LineRow(claim_id, first + n, at, level, text) for n, text in enumerate(texts)]
    )


def text(response: Any) -> str:
    assert response.status_code in (200, 286), response.status_code
    return response.content.decode()


def test_a_live_attempt_is_shown_with_what_it_has_done_so_far(
    boss: Client, acme: Tenant
):
    item = screens.executing(
        acme,
        progress={"seen": 812, "failed": 1, "asset": "payments-api"},
        handler="a.b",
    )
    lines(item.claim_id, "looking for work")
    html = text(boss.get(f"/admin/run/{item.claim_id}/"))
    for said in (
        "Executing",
        "queue-1, 31",
        "812",
        "payments-api",
        "looking for work",
        "1\u00a0line so far",
        "limit 1\u00a0h",
    ):
        assert said in html
    assert 'hx-trigger="every 500ms"' in html
    assert f"/admin/items/act/?verb=cancel&amp;item={item.pk}" in html
    assert "style=" not in html


def test_a_finished_attempt_is_the_ledgers_with_the_same_lines(
    boss: Client, acme: Tenant
):
    item = screens.executing(acme)
    lines(item.claim_id, "one", "two")
    before = text(boss.get(f"/admin/run/{item.claim_id}/"))
    item.delete()
    screens.run(
        acme,
        id=item.claim_id,
        line_count=2,
        summary="12 matched",
        details={"opened": 2},
        seen=5,
        handler=item.handler,
    )
    after = text(boss.get(f"/admin/run/{item.claim_id}/"))
    log = [
        html.partition('id="L1"')[2]
        .partition('<div class="gap" id="follow"')[0]
        .partition("\n </div>")[0]
        .strip()
        for html in (before, after)
    ]
    assert log[0] == log[1]
    assert "12 matched" in after
    assert "&quot;opened&quot;: 2" in after
    assert "every 500ms" not in after
    assert "Cancel…" not in after


def test_a_link_to_a_line_opens_its_stretch_and_earlier_lines_are_loaded_on_demand(
    boss: Client, acme: Tenant
):
    run = screens.run(acme, line_count=2500)
    lines(run.id, *(f"text {n}" for n in range(1, 2501)))
    page = text(boss.get(f"/admin/run/{run.id}/"))
    assert 'id="L2301"' in page
    assert 'id="L2300"' not in page
    assert "Lines 1 to 2,300" in page
    above = text(boss.get(f"/admin/run/{run.id}/lines/", {"before": 1501}))
    assert 'id="L501"' in above
    assert 'id="L1501"' not in above
    linked = text(boss.get(f"/admin/run/{run.id}/", {"line": 12}))
    assert 'id="L1"' in linked
    assert 'id="L12" class="sel"' in linked


@pytest.mark.parametrize(
    "query",
    [
        {"after": "x"},
        {"after": "-1"},
        {"after": "9" * 30},
        {"before": "\u0663"},
        {"line": "\x00"},
    ],
)
def test_no_number_in_the_address_is_an_error(
    boss: Client, acme: Tenant, query: dict[str, str]
):
    run = screens.run(acme)
    assert boss.get(f"/admin/run/{run.id}/lines/", query).status_code in (200, 286)
    assert boss.get(f"/admin/run/{run.id}/", query).status_code == 200


def test_attempts_and_a_late_result_are_explained(boss: Client, acme: Tenant):
    now = clock.now()
    first = screens.run(
        acme, outcome="abandoned", item_id=7, attempt=1, node="queue-2, 1", error="queue-2 was silent for 61 s",
        started_at=now - timedelta(seconds=400), enqueued_at=now - timedelta(seconds=402), claimed_at=now - timedelta(seconds=400),
        finished_at=now - timedelta(seconds=300),
    )  # fmt: skip
    screens.executing(
        acme, id=7, attempts=2, recoveries=1, enqueued_at=first.enqueued_at
    )
    ledger.record_late(
        LateRecord(
            claim_id=first.id, node_id=None, node="queue-2, 1", tenant_id=acme.pk, tenant="acme", handler=first.handler,
            started_at=first.started_at, finished_at=now, outcome="succeeded", seen=1204, changed=31,
        )
    )  # fmt: skip
    html = text(boss.get(f"/admin/run/{first.id}/"))
    assert "A late result of attempt 1 is kept, but does not count." in html
    assert "seen 1,204, changed 31" in html
    assert "queue-1, 31 took it" in html
    assert 'aria-label="Attempt 1 from' in html


@pytest.mark.parametrize("kind", ["live", "finished"])
@pytest.mark.parametrize("part", ALL)
def test_another_tenants_attempt_is_not_there(acme: Tenant, kind: str, part: str):
    granite = factories.tenant("granite")
    ids = {}
    for tenant in (acme, granite):
        ids[tenant.slug] = (
            screens.executing(tenant).claim_id
            if kind == "live"
            else screens.run(tenant).id
        )
    anna = screens.signed_in(
        screens.staff(acme, "audit.view_run", "audit.view_transcript", "audit.export")
    )
    assert anna.get(f"/admin/run/{ids['acme']}/{part}").status_code in (200, 286)
    assert anna.get(f"/admin/run/{ids['granite']}/{part}").status_code == 404
    nobody = screens.signed_in(screens.staff(acme))
    assert nobody.get(f"/admin/run/{ids['acme']}/{part}").status_code == 403
    assert Client().get(f"/admin/run/{ids['acme']}/{part}").status_code == 302


@pytest.mark.parametrize(
    "claim_id",
    [
        uuid4(),
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "00000000-0000-0000-0000-000000000000",
    ],
)
@pytest.mark.parametrize("part", ALL)
def test_an_unknown_id_is_404(boss: Client, claim_id: Any, part: str):
    assert boss.get(f"/admin/run/{claim_id}/{part}").status_code == 404


def test_hostile_text_is_text_everywhere_on_the_page(boss: Client, acme: Tenant):
    more = {"handler": HOSTILE[:64], "node": HOSTILE[:200], "tenant": HOSTILE[:64]}
    first = screens.run(
        acme,
        outcome="failed",
        error=HOSTILE,
        summary=HOSTILE,
        details={HOSTILE: HOSTILE},
        dedup_key=HOSTILE,
        item_id=9,
        line_count=1,
        **more,
    )
    lines(first.id, HOSTILE)
    ledger.record_late(
        LateRecord(
            claim_id=first.id, node_id=None, node=HOSTILE, tenant_id=acme.pk, tenant=HOSTILE[:64], handler=HOSTILE[:64],
            started_at=first.started_at, finished_at=clock.now(), outcome="failed", error=HOSTILE, summary=HOSTILE, transcript=HOSTILE,
        )
    )  # fmt: skip
    screens.executing(
        acme,
        id=9,
        attempts=2,
        progress={HOSTILE: HOSTILE, "seen": HOSTILE},
        handler=HOSTILE[:64],
        tenant_slug=HOSTILE[:64],
        node=HOSTILE,
    )
    for claim_id in (first.id, WorkItem.objects.get().claim_id):
        for part in ("", "lines/"):
            html = text(boss.get(f"/admin/run/{claim_id}/{part}"))
            assert not [
                html[max(html.index(mark) - 60, 0) :][:100]
                for mark in LIVE
                if mark in html
            ]


@pytest.mark.parametrize(
    "progress", [None, [], "x", 5, {"seen": "many", "changed": None}]
)
def test_no_progress_breaks_the_page(boss: Client, acme: Tenant, progress: Any):
    item = screens.executing(acme, progress=progress)
    assert boss.get(f"/admin/run/{item.claim_id}/").status_code == 200


def test_a_page_of_a_thousand_lines_costs_as_many_statements_as_one_of_one(
    boss: Client, acme: Tenant, django_assert_num_queries
):
    for count in (1, 1000):
        run = screens.run(acme, line_count=count, item_id=count + 10)
        lines(run.id, *map(str, range(count)))
        boss.get(f"/admin/run/{run.id}/")
        live.refresh()
        # Session, user, the bell; item, run, item; attempts; late; median; lines, their levels.
        with django_assert_num_queries(11):
            boss.get(f"/admin/run/{run.id}/")


def test_of_an_item_that_goes_on_for_long_the_attempts_around_this_one_are_shown(
    boss: Client, acme: Tenant
):
    item = screens.executing(acme, attempts=121, handler="a.b")
    runs = [
        screens.run(acme, item_id=item.pk, handler="a.b", attempt=number)
        for number in range(1, 121)
    ]
    html = text(boss.get(f"/admin/run/{runs[59].id}/"))
    assert "the 51 around this one" in html  # with the one that runs
    for number, shown in ((35, False), (36, True), (85, True), (86, False)):
        assert (f"/admin/run/{runs[number - 1].id}/" in html) == shown, number
    assert "the newest 50" in text(boss.get(f"/admin/items/{item.pk}/"))


def test_details_are_shown_as_json(boss: Client, acme: Tenant):
    run = screens.run(acme, details={"a": [1, {"b": "ü"}]})
    shown = boss.get(f"/admin/run/{run.id}/").context["details"]
    assert json.loads(shown) == {"a": [1, {"b": "ü"}]}
