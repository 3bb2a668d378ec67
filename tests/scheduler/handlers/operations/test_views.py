"""An operation's page: how far it is, why it waits, what became of every row; and its list."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.handlers.operations import start
from scheduler.handlers.operations.models import BulkOperation
from tests import factories, screens
from tests.scheduler.handlers.operations.conftest import HANDLER
from tests.scheduler.handlers.operations.test_ask import RIGHTS, confirmed, text
from tests.screens import HOSTILE, LIVE
from workqueue.models import Membership, Tenant, WorkItem

pytestmark = pytest.mark.django_db
LIST = "/admin/operations/"


@pytest.fixture
def asked(boss: Client, acme: Tenant) -> BulkOperation:
    """An operation over one item that waits and one that is held."""
    screens.pending(acme, handler=HANDLER)
    screens.held(factories.tenant("granite"), handler=HANDLER)
    confirmed(boss)
    return BulkOperation.objects.get()


def test_it_says_that_it_waits_and_why(boss: Client, asked: BulkOperation):
    said = text(boss.get(f"{LIST}{asked.pk}/"))
    assert "Cancel 2 items" in said
    assert "0 of 2 rows" in said
    assert "Waits because no worker process is running." in said
    assert "Stop…" in said


def test_it_shows_the_result_of_every_row_and_no_stop_once_it_is_over(
    boss: Client, asked: BulkOperation, carry_out: Callable[..., Any]
):
    carry_out(asked)
    said = text(boss.get(f"{LIST}{asked.pk}/"))
    assert "2 of 2 rows" in said
    assert "it is held: release or drop it" in said
    assert "Stop…" not in said
    assert (
        "granite"
        not in text(boss.get(f"{LIST}{asked.pk}/?show=done")).partition("<tbody>")[2]
    )
    assert (
        "acme"
        not in text(boss.get(f"{LIST}{asked.pk}/?show=skipped")).partition("<tbody>")[2]
    )


def test_the_list_says_who_asked_for_what_and_why(boss: Client, asked: BulkOperation):
    said = text(boss.get(LIST))
    for part in ("Cancel 2 items", "boss", "CHG-1", "Waiting"):
        assert part in said


def test_an_empty_list_says_what_to_do(boss: Client):
    assert "No bulk operation was asked for" in text(boss.get(LIST))


def test_it_is_stopped_with_a_reason(boss: Client, asked: BulkOperation):
    address = f"{LIST}{asked.pk}/stop/"
    assert "Stop operation" in text(boss.get(address))
    assert "Say why" in text(boss.post(address, {"why": ""}), 400)
    assert "Stopped by" in text(
        boss.post(address, {"why": "wrong filter"}, follow=True)
    )
    assert "stops already" in text(boss.post(address, {"why": "again"}, follow=True))
    asked.refresh_from_db()
    assert (asked.stopped_by, asked.stopped_why) == ("boss", "wrong filter")


def test_one_that_was_interrupted_says_so_and_goes_on_with_a_reason(
    boss: Client, asked: BulkOperation
):
    WorkItem.objects.filter(handler="operations.bulk").delete()
    address = f"{LIST}{asked.pk}/go-on/"
    assert "Interrupted" in text(boss.get(LIST))
    said = text(boss.get(f"{LIST}{asked.pk}/"))
    assert "Interrupted" in said
    assert "No worker goes on with it" in said
    assert address in said
    assert "2 rows are left" in text(boss.get(address))
    assert "Say why" in text(boss.post(address, {"why": ""}), 400)
    said = text(boss.post(address, {"why": "CHG-2"}, follow=True))
    assert "It goes on" in said
    assert "Interrupted" not in said
    assert address not in said
    again = boss.post(address, {"why": "again"}, follow=True)
    assert "is not interrupted" in text(again)


def test_of_two_who_go_on_with_one_at_once_the_second_is_told(
    boss: Client, asked: BulkOperation, monkeypatch: pytest.MonkeyPatch
):
    items = WorkItem.objects.filter(handler="operations.bulk")
    items.delete()
    go_on = start.go_on

    def second(operation: BulkOperation, **by: str) -> bool:
        return go_on(operation, **by) and go_on(operation, **by)

    monkeypatch.setattr(start, "go_on", second)
    said = boss.post(f"{LIST}{asked.pk}/go-on/", {"why": "CHG-2"}, follow=True)
    assert "Nothing was done: somebody else was first." in text(said)
    assert items.count() == 1


def test_one_that_was_interrupted_is_over_when_it_is_stopped(
    boss: Client, asked: BulkOperation
):
    WorkItem.objects.filter(handler="operations.bulk").delete()
    said = text(boss.post(f"{LIST}{asked.pk}/stop/", {"why": "no more"}, follow=True))
    assert "It is over; what is done stays." in said
    assert "Stopped by" in said


def test_other_tenants_operations_are_not_there(asked: BulkOperation, acme: Tenant):
    user = screens.staff(acme, *RIGHTS)
    client = screens.signed_in(user)
    assert confirmed(client).status_code == 302
    own = BulkOperation.objects.get(tenant=acme)
    assert client.get(f"{LIST}{own.pk}/").status_code == 200
    for foreign in (asked.pk, 10**17, 10**30):
        assert client.get(f"{LIST}{foreign}/").status_code == 404
        for verb in ("stop", "go-on"):
            answer = client.post(f"{LIST}{foreign}/{verb}/", {"why": "x"})
            assert answer.status_code == 404
    assert f"{LIST}{asked.pk}/" not in text(client.get(LIST))
    granite = screens.signed_in(screens.staff(factories.tenant("other"), *RIGHTS))
    assert granite.get(f"{LIST}{own.pk}/").status_code == 404


def test_a_viewer_sees_it_and_cannot_stop_it(boss: Client, acme: Tenant):
    screens.pending(acme, handler=HANDLER)
    confirmed(screens.signed_in(screens.staff(acme, *RIGHTS)))
    own = BulkOperation.objects.get()
    viewer = screens.signed_in(
        screens.staff(acme, *RIGHTS, role=Membership.Role.VIEWER)
    )
    assert "Stop…" not in text(viewer.get(f"{LIST}{own.pk}/"))
    for verb in ("stop", "go-on"):
        answer = viewer.post(f"{LIST}{own.pk}/{verb}/", {"why": "x"})
        assert answer.status_code == 403


def test_hostile_text_stays_text(
    boss: Client, acme: Tenant, carry_out: Callable[..., Any]
):
    screens.pending(acme, handler=HANDLER, tenant_slug=HOSTILE[:60], dedup_key=HOSTILE)
    confirmed(boss, why=HOSTILE, query="text=%3Cscript%3E")
    operation = BulkOperation.objects.get()
    carry_out(operation)
    for address in (LIST, f"{LIST}{operation.pk}/", f"{LIST}{operation.pk}/stop/"):
        html = boss.get(address, follow=True).content.decode()
        assert not any(live in html for live in LIVE), address


def test_the_list_asks_the_same_however_many_there_are(boss: Client, acme: Tenant):
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            boss.get(LIST)
        return len(queries)

    screens.pending(acme, handler=HANDLER)
    confirmed(boss)
    boss.get(LIST)
    before = asked()
    for _ in range(5):
        confirmed(boss)
    assert asked() == before
