"""The page before the deed: what would be done to how many, for whom, and what is refused."""

from typing import Any

import pytest
from django.test import Client

from scheduler.handlers.operations.models import BulkOperation
from tests import factories, screens
from tests.scheduler.handlers.operations.conftest import HANDLER
from tests.screens import HOSTILE, LIVE
from workqueue.models import Membership, Tenant, WorkItem

pytestmark = pytest.mark.django_db
BEGIN = "/admin/operations/begin/"
RIGHTS = (
    "workqueue.view_workitem",
    "workqueue.cancel_item",
    "workqueue.bulk_items",
    "audit.view_run",
)


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.status_code
    return " ".join(response.content.decode().replace("\u00a0", " ").split())


def confirmed(client: Client, **more: str) -> Any:
    fields = {"of": "items", "verb": "cancel", "at_most": "10000", "why": "CHG-1"}
    return client.post(BEGIN, {**fields, **more})


def test_it_says_what_would_be_done_to_how_many_before_anything_is(
    boss: Client, acme: Tenant
):
    screens.pending(acme, handler=HANDLER)
    screens.pending(acme, handler=HANDLER, dedup_key="2")
    screens.held(acme, handler=HANDLER, dedup_key="3")
    screens.pending(factories.tenant("granite"), handler=HANDLER)
    said = text(boss.get(BEGIN, {"of": "items", "verb": "cancel", "tenant": "acme"}))
    assert "Cancel 3 items?" in said
    assert "<dt>Would be done</dt><dd>2 items" in said
    assert "1 item in a state in which this cannot be done" in said
    assert "Tenant</span> acme" in said
    assert "Notification Handler 3" in said
    assert not BulkOperation.objects.exists()


def test_runs_of_one_item_are_counted_as_one(boss: Client, acme: Tenant):
    for _ in range(3):
        screens.run(acme, handler=HANDLER, outcome="failed")
    said = text(boss.get(BEGIN, {"of": "runs", "verb": "repeat"}))
    assert "Retry 3 runs?" in said
    assert "3 runs, of 1 item" in said


def test_a_confirmed_operation_is_frozen_as_it_was_shown(boss: Client, acme: Tenant):
    item = screens.pending(acme, handler=HANDLER)
    shown = boss.get(BEGIN, {"of": "items", "verb": "cancel", "tenant": "acme"})
    draft = shown.context["draft"]
    screens.pending(acme, handler=HANDLER, dedup_key="later")
    answer = confirmed(
        boss,
        query=draft.query,
        asked_at=draft.asked_at.isoformat(),
        max_id=str(draft.max_id),
        at_most="5",
    )
    made = BulkOperation.objects.get()
    assert answer.url == f"/admin/operations/{made.pk}/"
    assert (made.max_id, made.asked_at) == (item.pk, draft.asked_at)
    assert (made.query, made.expected, made.at_most) == ("tenant=acme", 1, 5)
    assert (made.who, made.why, made.tenants) == ("boss", "CHG-1", None)
    assert WorkItem.objects.filter(handler="operations.bulk").count() == 1


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("why", " ", "Say why: the next operator reads it."),
        ("why", "x" * 501, "Enter at most 500 characters."),
        ("at_most", "0", "Enter a number from 1 to 10,000."),
        ("at_most", "١٢", "Enter a number from 1 to 10,000."),
        ("at_most", "9" * 40, "Enter a number from 1 to 10,000."),
    ],
)
def test_what_is_missing_or_out_of_range_is_said_and_nothing_is_done(
    boss: Client, acme: Tenant, field, value, said
):
    screens.pending(acme, handler=HANDLER)
    assert said in text(confirmed(boss, **{field: value}), 400)
    assert not BulkOperation.objects.exists()


def test_a_filter_that_cannot_be_read_acts_on_nothing(boss: Client, acme: Tenant):
    screens.pending(acme, handler=HANDLER)
    answer = boss.get(
        BEGIN, {"of": "items", "verb": "cancel", "older_than": "odd"}, follow=True
    )
    assert "Nothing was done: a filter could not be read." in text(answer)


def test_a_page_that_is_not_believed_is_frozen_now(boss: Client, acme: Tenant):
    item = screens.pending(acme, handler=HANDLER)
    confirmed(boss, asked_at="9999-01-01T00:00:00+00:00", max_id="9" * 18)
    made = BulkOperation.objects.get()
    assert made.max_id == item.pk
    assert made.asked_at.year < 9999


@pytest.mark.parametrize(
    "asked", [{}, {"of": "runs", "verb": "cancel"}, {"of": "x", "verb": "cancel"}]
)
def test_what_no_list_offers_is_not_there(boss: Client, acme: Tenant, asked):
    assert boss.get(BEGIN, asked).status_code == 404


def test_who_may_not_do_it_to_one_may_not_do_it_to_all(acme: Tenant):
    screens.pending(acme, handler=HANDLER)
    viewer = screens.staff(acme, *RIGHTS, role=Membership.Role.VIEWER)
    unfit = screens.staff(acme, RIGHTS[0])
    for user in (viewer, unfit):
        client = screens.signed_in(user)
        assert client.get(BEGIN, {"of": "items", "verb": "cancel"}).status_code == 403
        assert confirmed(client).status_code == 403
        assert "All matching" not in text(client.get("/admin/items/"))
    assert not BulkOperation.objects.exists()


def test_an_operator_of_tenants_acts_on_theirs_alone_one_operation_each(acme: Tenant):
    granite, foreign = factories.tenant("granite"), factories.tenant("foreign")
    user = screens.staff(acme, *RIGHTS)
    Membership.objects.create(user=user, tenant=granite, role=Membership.Role.OPERATOR)
    for tenant in (acme, granite, foreign):
        screens.pending(tenant, handler=HANDLER)
    client = screens.signed_in(user)
    assert "Cancel 2 items?" in text(
        client.get(BEGIN, {"of": "items", "verb": "cancel"})
    )
    assert confirmed(client).url == "/admin/operations/"
    made = BulkOperation.objects.order_by("tenant__slug")
    assert [(one.tenant.slug, one.tenants, one.expected) for one in made] == [
        ("acme", [acme.pk], 1),
        ("granite", [granite.pk], 1),
    ]


def test_hostile_names_are_shown_and_never_run(boss: Client, acme: Tenant):
    screens.pending(acme, handler=HANDLER, tenant_slug="acme", dedup_key=HOSTILE[:180])
    said = text(
        boss.get(BEGIN, {"of": "items", "verb": "cancel", "text": HOSTILE[:60]})
    )
    assert not any(live in said for live in LIVE)


def test_the_lists_offer_it_with_their_filters(boss: Client, acme: Tenant):
    screens.pending(acme, handler=HANDLER)
    screens.run(acme, handler=HANDLER, outcome="failed")
    items = text(boss.get("/admin/items/", {"tenant": "acme"}))
    assert f"{BEGIN}?of=items&amp;verb=cancel&amp;tenant=acme" in items
    runs = text(boss.get("/admin/audit/runs/", {"outcome": "failed"}))
    assert f"{BEGIN}?of=runs&amp;verb=repeat&amp;outcome=failed" in runs
