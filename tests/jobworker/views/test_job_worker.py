"""Global Settings > Job Worker: caps that are refused, saved and restored; cards; jobs now."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit import clock
from audit.models import Change
from jobworker.caps import DECLARATION
from tests import factories, screens
from tests.jobworker.screening import pending, running, worker
from workqueue.models import Node, Setting, Tenant

pytestmark = pytest.mark.django_db
PAGE = "/admin/job-worker/"
GOOD = {
    "heavy": "2",
    "medium": "1",
    "light": "3",
    "total": "3",
    "WORKER_EXECUTOR_THREADS": "0",
}


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status
    return " ".join(response.content.decode().split())


def test_without_a_worker_it_says_so_in_the_references_words(boss: Client):
    html = text(boss.get(PAGE))
    assert "No worker has reported yet" in html
    assert "manage.py runjobworker" in html


def test_caps_are_shown_with_default_bounds_and_when_they_apply(boss: Client):
    html = text(boss.get(PAGE))
    for words in (
        "Caps for each job worker, all at their defaults",
        "Default 2, from 0 to 500",
        "Default 3, from 1 to 500",
        "Default 0, from 0 to 1,000",
        "Enough for these caps are 25.",
    ):
        assert words in html
    assert html.count('class="mr-tag">live') == 4
    assert html.count('class="mr-tag is-warn">restart') == 1


def test_a_card_says_what_is_reduced_why_and_what_raising_it_needs(boss: Client):
    why = "DB pool of 10 serves 3 concurrent job(s); raise DB_POOL_SIZE / DB_MAX_OVERFLOW to use 12"
    worker(
        caps={"heavy": 2, "medium": 1, "light": 3, "total": 12},
        reduced=[{"what": "total", "from": 12, "to": 3, "why": why}],
    )
    html = text(boss.get(PAGE))
    assert "reduced: total 12→3</strong>" in html
    assert f"why: {why}" in html
    assert "12 asked, 3 used: see the status cards" in html
    assert "To run 12 jobs awake it needs a pool of 28 connections" in html


def test_a_card_that_is_old_says_so(boss: Client):
    with clock.at(clock.now()):
        worker(heartbeat_at=clock.now() - timedelta(seconds=42))
        html = text(boss.get(PAGE))
    assert "This card is 42" in html
    assert "no picture of now" in html


def test_a_change_is_a_version_with_who_and_why(boss: Client):
    worker()
    sent = {**GOOD, "heavy": "4", "_version": "0", "why": "more builds"}
    html = text(boss.post(PAGE, sent, follow=True))
    assert "Version 1 is saved" in html
    assert "version 1" in html
    row = Setting.objects.get(name=DECLARATION.name)
    assert (row.values, row.who, row.why) == ({"heavy": 4}, "boss", "more builds")
    assert Change.objects.get().subject == "setting:Job Worker"
    assert "0 of 1 job worker applies version 1" in html
    Node.objects.update(report={"settings_version": 1})
    assert "1 of 1 job worker applies version 1" in text(boss.get(PAGE))


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", ["-1", "1001", "1.5", "ten", "\u0661", "9" * 400])
def test_a_bad_value_is_refused_with_its_range_and_stays_in_the_field(
    boss: Client, name: str, value: str
):
    key = DECLARATION.key(name)
    assert key
    html = text(boss.post(PAGE, {**GOOD, name: value, "_version": "0"}), 400)
    assert f"Enter a number from {key.low:,} to {key.high:,}." in html
    assert f'value="{value}"' in html
    assert not Setting.objects.exists()


def test_an_old_version_is_restored_from_its_history(boss: Client):
    for heavy in ("4", "5"):
        version = Setting.objects.count()
        boss.post(PAGE, {**GOOD, "heavy": heavy, "_version": str(version)})
    html = text(boss.get(PAGE))
    restore = "/admin/settings/job-worker/restore/1/"
    assert f'href="{restore}"' in html
    boss.post(restore, {"why": "too many", "_version": "2"})
    newest = Setting.objects.newest(DECLARATION.name)
    assert newest
    assert (newest.version, newest.values) == (3, {"heavy": 4})


def test_the_history_shows_what_is_stored_whatever_that_is(boss: Client):
    for version, values in enumerate(({"heavy": True}, [1], "x"), start=1):
        Setting.objects.create(
            name=DECLARATION.name,
            version=version,
            values=values,
            at=clock.now(),
            who="anna",
            origin="command",
        )
    html = text(boss.get(PAGE))
    assert "<code>heavy</code> <del>2</del> <ins>true</ins>" in html
    assert "stored is <code>[1]</code>, which is no set of values" in html
    assert "stored is <code>“x”</code>, which is no set of values" in html
    assert "no value changed" not in html


def test_it_stands_among_the_settings_and_has_one_address(boss: Client):
    assert "Job Worker" in text(boss.get("/admin/settings/?q=heavy"))
    assert boss.get("/admin/settings/job-worker/")["Location"] == PAGE


def test_what_runs_and_waits_stands_below(boss: Client, acme: Tenant):
    running(acme)
    pending(acme, subject="waits")
    html = text(boss.get(PAGE))
    assert "1 running, 1 pending." in html
    assert "waits</span>" in html


def test_it_is_the_platforms_and_only_those_who_may_set_are_offered_to(acme: Tenant):
    rights = ("workqueue.view_setting", "workqueue.edit_caps")
    assert screens.signed_in(screens.staff(acme, *rights)).get(PAGE).status_code == 404
    reader = screens.staff(factories.platform(), "workqueue.view_setting")
    client = screens.signed_in(reader)
    assert "Save version" not in text(client.get(PAGE))
    assert client.post(PAGE, {**GOOD, "_version": "0"}).status_code == 403


def test_what_came_in_by_sql_is_shown_with_what_is_used_of_it(boss: Client):
    Setting.objects.create(
        name=DECLARATION.name,
        version=1,
        values={"total": 100_000},
        at=clock.now(),
        who="sql",
        origin="command",
    )
    html = text(boss.get(PAGE))
    assert "100000 is stored, 500 used" in html
