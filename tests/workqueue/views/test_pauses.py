"""Pauses: what is asked, what is refused, who sees which."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit import clock
from audit.models import Change
from tests import factories, screens
from tests.screens import HOSTILE, LIVE
from workqueue import live, pauses, registry
from workqueue.models import Pause, Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("timetable")]
LIST, ADD = "/admin/pauses/", "/admin/pauses/pause/"
RIGHTS = ("workqueue.view_pause", "workqueue.pause_queue", "workqueue.resume_queue")


@pytest.fixture(autouse=True)
def fresh() -> Any:
    live.forget()
    yield
    live.forget()


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.status_code
    return response.content.decode()


def paused(tenant: Tenant, **values: Any) -> Pause:
    return pauses.pause(
        **{
            "scope": "tenant",
            "tenant": tenant,
            "reason": f"moving {tenant.slug}",
            "who": "anna",
            "origin": "admin",
            **values,
        }
    )


@pytest.mark.parametrize(
    "data",
    [
        {"scope": "everything"},
        {"scope": "handler", "handler": "act"},
        {"scope": "tenant", "tenant": "acme"},
    ],
)
def test_a_pause_names_what_until_when_and_why(
    boss: Client, acme: Tenant, data: dict[str, str]
):
    response = boss.post(ADD, {**data, "until": "2 h", "reason": "database move"})
    assert response["Location"] == LIST
    row = Pause.objects.get()
    assert (row.scope, row.handler, row.tenant) == (
        data["scope"],
        data.get("handler", ""),
        acme if "tenant" in data else None,
    )
    assert row.until is not None
    assert timedelta(minutes=119) < row.until - clock.now() <= timedelta(hours=2)
    assert Change.objects.get().why == "database move"
    assert "database move" in text(boss.get(LIST))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"scope": "handler"}, "Choose the handler that is paused."),
        ({"scope": "tenant"}, "Choose the tenant that is paused."),
        ({"scope": "everything", "reason": ""}, "Say why"),
        ({"scope": "everything", "until": "2020-01-01 00:00"}, "That time is past"),
        ({"scope": "everything", "until": "soon"}, "is no moment"),
        ({"scope": "everything", "until": "\x00"}, "is no moment"),
        ({"scope": "job_type", "handler": "act"}, "job_type"),
        ({"scope": "handler", "handler": "no.such"}, "no.such"),
        ({"scope": "tenant", "tenant": "no-such"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_paused_is_refused_with_a_sentence(
    boss: Client, acme: Tenant, data: dict[str, str], sentence: str
):
    assert sentence in text(boss.post(ADD, {"reason": "x", **data}), 400)
    assert not Pause.objects.exists()


def test_what_is_paused_already_says_by_whom(boss: Client, acme: Tenant):
    paused(acme)
    assert "It is paused already, by anna" in text(
        boss.post(ADD, {"scope": "tenant", "tenant": "acme", "reason": "x"}), 400
    )


def test_resuming_asks_why_and_is_done_once(boss: Client, acme: Tenant):
    row = paused(acme)
    address = f"{LIST}{row.pk}/resume/"
    assert "moving acme" in text(boss.get(address))
    text(boss.post(address, {"why": " "}), 400)
    assert Pause.objects.in_force().count() == 1
    assert boss.post(address, {"why": "done"})["Location"] == LIST
    assert boss.post(address, {"why": "again"})["Location"] == LIST
    row.refresh_from_db()
    assert (row.ended_by, Change.objects.filter(verb="resumed").count()) == ("boss", 1)
    assert "Nothing is paused" in text(boss.get(LIST))


def test_a_pause_whose_time_is_over_is_not_in_force(boss: Client, acme: Tenant):
    row = paused(acme)
    Pause.objects.filter(pk=row.pk).update(until=clock.now() - timedelta(minutes=1))
    html = text(boss.get(LIST))
    assert "Nothing is paused" in html
    assert "as set" in html


def test_a_pause_in_force_is_listed_however_many_have_ended_since(
    boss: Client, acme: Tenant
):
    held = paused(acme, reason="moving to another region")
    now = clock.now()
    Pause.objects.bulk_create(
        Pause(
            scope="everything",
            reason="a deploy",
            who="anna",
            since=now + timedelta(seconds=n),
            ended_at=now + timedelta(seconds=n),
        )
        for n in range(1, 121)
    )
    html = text(boss.get(LIST))
    assert "moving to another region" in html
    assert f"/admin/pauses/{held.pk}/resume/" in html
    assert "the last 50" in html


def test_a_member_pauses_and_resumes_his_tenant_alone(acme: Tenant):
    granite = factories.tenant("granite")
    foreign, mine = paused(granite), paused(acme)
    anna = screens.signed_in(screens.staff(acme, *RIGHTS))
    html = text(anna.get(LIST))
    assert "moving acme" in html
    assert "granite" not in html
    assert "granite" not in text(anna.get(ADD))
    assert anna.get(f"{LIST}{foreign.pk}/resume/").status_code == 404
    assert anna.post(f"{LIST}{foreign.pk}/resume/", {"why": "x"}).status_code == 404
    for data in (
        {"scope": "everything"},
        {"scope": "handler", "handler": "act"},
        {"scope": "tenant", "tenant": "granite"},
    ):
        text(anna.post(ADD, {**data, "reason": "x"}), 400)
    anna.post(f"{LIST}{mine.pk}/resume/", {"why": "x"})
    assert list(Pause.objects.in_force()) == [foreign]
    assert (
        anna.post(
            ADD, {"scope": "tenant", "tenant": "acme", "reason": "again"}
        ).status_code
        == 302
    )


def test_the_server_refuses_who_lacks_the_permission_or_the_role(acme: Tenant):
    row = paused(acme)
    looker = screens.signed_in(screens.staff(acme, RIGHTS[0]))
    viewer = screens.signed_in(screens.staff(acme, *RIGHTS, role="viewer"))
    for client in (looker, viewer):
        html = text(client.get(LIST))
        assert "Pause…" not in html
        assert "Resume…" not in html.partition("<main")[2].partition("In force")[2]
        assert client.post(
            ADD, {"scope": "tenant", "tenant": "acme", "reason": "x"}
        ).status_code in (403, 404)
        assert client.post(f"{LIST}{row.pk}/resume/", {"why": "x"}).status_code == 403
    assert screens.signed_in(screens.staff(acme)).get(LIST).status_code == 403
    assert Client().get(LIST).status_code == 302


def test_hostile_text_is_text(boss: Client, acme: Tenant):
    row = paused(acme, reason=HOSTILE, who=HOSTILE[:150])
    for address in (LIST, f"{LIST}{row.pk}/resume/"):
        html = text(boss.get(address))
        assert not [
            html[max(html.index(mark) - 60, 0) :][:100] for mark in LIVE if mark in html
        ]


def test_a_job_type_is_paused_resumed_and_shown_on_every_page(boss: Client):
    (type, *_) = registry.job_types()
    sent = {"scope": "job_type", "job_type": type, "reason": "quota", "until": "2 h"}
    html = boss.post("/admin/pauses/pause/", sent, follow=True).content.decode()
    assert f"Job type {type} is paused until" in html
    row = Pause.objects.get()
    assert (row.scope, row.handler, row.tenant) == ("job_type", type, None)
    assert live.refresh().paused(type, 7, clock.now())
    assert f"Job type {type} is paused" in boss.get("/admin/").content.decode()
    boss.post(f"/admin/pauses/{row.pk}/resume/", {"why": "quota raised"})
    assert not live.refresh().paused(type, 7, clock.now())


def test_a_job_types_pause_names_one_that_exists(boss: Client):
    for type in ("", "no_such_type"):
        sent = {"scope": "job_type", "job_type": type, "reason": "quota"}
        response = boss.post("/admin/pauses/pause/", sent)
        assert response.status_code == 400
    assert not Pause.objects.exists()
