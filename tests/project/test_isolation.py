"""Role by page by method: nobody sees, or changes, what is not his tenant's.

Every address is taken from the resolver, and every column of the other tenant's rows
holds a word that must occur in no answer.
"""

import logging
import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.contrib.auth.models import Group, Permission, User
from django.db import models, transaction
from django.test import Client

from audit import page
from project import roles
from tests import factories, screens, walk, world
from tests.world import World
from workqueue import live
from workqueue.models import Tenant

pytestmark = [
    pytest.mark.walk,
    pytest.mark.once,
    pytest.mark.django_db,
]  # scope is the ORM's on both databases
CANARY = "canary-7f3a"
PLANTED = f"planted {CANARY}"
PLATFORM = "platform-canary-91c2"
EVERYTHING = "everything"
READERS = [
    (roles.VIEWER, "viewer"),
    (roles.OPERATOR, "operator"),
    (roles.SCHEDULER_MANAGER, "operator"),
    (roles.TENANT_ADMINISTRATOR, "administrator"),
    # Groups that a tenant's staff should not have, and every permission there is.
    (roles.PLATFORM_ADMINISTRATOR, "administrator"),
    (EVERYTHING, "administrator"),
    (EVERYTHING, "viewer"),
]
REFUSED = (403, 404, 405)


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    live.forget()
    logging.disable()  # thousands of refusals
    yield
    logging.disable(logging.NOTSET)
    live.forget()


@pytest.fixture
def theirs() -> World:
    """The other tenant's rows, and the platform's."""
    return world.of_tenant(CANARY, PLANTED)


@pytest.fixture
def platform() -> World:
    return world.of_platform(f"planted {PLATFORM}")


@pytest.fixture
def mine() -> World:
    return world.of_tenant("acme", "of acme")


def reader(of: Tenant, group: str, role: str) -> User:
    one = factories.member(of, role)
    if group == EVERYTHING:
        one.user_permissions.set(Permission.objects.all())
    else:
        one.groups.add(Group.objects.get(name=group))
    return one


def browser(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def body(response: Any) -> str:
    if response.streaming:
        content = b"".join(response.streaming_content)
    else:
        content = response.content
    return content.decode(errors="replace") + str(response.headers)


def around(text: str, word: str) -> str:
    """The place in an answer where the word stands."""
    place = text.find(word)
    return text[max(place - 300, 0) : place + 100]


def silent(response: Any, address: str) -> int:
    """Its status, where it holds no word of another tenant or of the platform."""
    shown = body(response).replace(address, "")
    for word in (CANARY, PLATFORM):
        assert word not in shown, (address, around(shown, word))
    assert response.status_code < 500, address
    status: int = response.status_code
    return status


@pytest.mark.parametrize(("group", "role"), READERS)
def test_a_reader_sees_his_own_rows_and_others_ids_are_404(
    mine: World, theirs: World, platform: World, group: str, role: str
):
    client = browser(reader(mine.of, group, role))
    asked = 0
    for each in walk.pages():
        own = each.addresses(mine)
        opened = [silent(client.get(address), address) for address in own]
        foreign = {*each.addresses(theirs), *each.addresses(platform)} - {*own}
        wanted = (404,) if 200 in opened else REFUSED
        for address in foreign:
            asked += 1
            assert silent(client.get(address), address) in wanted, address
            assert silent(client.head(address), address) in wanted, address
    assert asked > 20


@pytest.mark.parametrize(("group", "role"), READERS)
def test_what_a_reader_posts_never_touches_another_tenants_rows(
    mine: World, theirs: World, platform: World, group: str, role: str
):
    client = browser(reader(mine.of, group, role))
    before, posted = fingerprint(theirs), 0
    for each in walk.pages():
        for address in {*each.addresses(mine), *each.addresses(theirs)}:
            for data in wishes(theirs):
                kept = client.cookies.copy()
                with transaction.atomic():
                    status = posts(client, address, data)
                    if status < 400:
                        posted += 1
                        assert fingerprint(theirs) == before, (address, data)
                    transaction.set_rollback(True)
                client.cookies = kept
                if status in REFUSED:
                    break  # whatever else it might be sent
    assert fingerprint(theirs) == before
    assert posted > 0


def posts(client: Client, address: str, data: dict[str, Any]) -> int:
    """Its status; neither it nor the page that it leads to may tell anything."""
    response = client.post(address, data)
    status: int = response.status_code
    assert status < 500, (address, data)
    shown = body(response)
    if status == 302 and response["Location"].startswith("/"):
        shown += body(client.get(response["Location"]))
    for word in (CANARY, PLATFORM):
        assert word not in without_echo(shown), (address, data, around(shown, word))
    return status


def wishes(theirs: World) -> list[dict[str, Any]]:
    """Forms that name the other tenant's rows in every way that any of ours is read."""
    every = [str(row.pk) for rows in theirs.rows.values() for row in rows]
    shared = {
        "why": "x",
        "reason": "x",
        "post": "yes",
        "_selected_action": every,
        "index": "0",
        "item": every,
        "id": every,
        "name": "made by another",
        "user": str(theirs.one("workqueue.Membership").user.pk),
        "role": "administrator",
        "record_type": "runs",
        "keep_days": "1",
        "slug": "renamed",
        "scope": "tenant",
    }
    return [
        {**shared, "verb": "cancel", "do": "retry", "tenant": theirs.of.slug},
        {
            **shared,
            "verb": "drop",
            "do": "suppress",
            "tenant": theirs.of.pk,
            "kind": "web",
            "action": "delete",
            "is_enabled": "on",
        },
        {
            **shared,
            "verb": "release",
            "tenant": theirs.of.pk,
            "action": "delete_selected",
            "select_across": "1",
        },
    ]


def without_echo(text: str) -> str:
    """Without what was typed: the tenant's name comes back in the field it was put into."""
    return re.sub(rf'value="{CANARY}"|“{CANARY}”', "", text)


def fingerprint(of: World) -> dict[str, Any]:
    """All rows of a tenant, column by column."""
    found: dict[str, Any] = {}
    for label in of.rows:
        model = apps.get_model(label)
        rows: Any = model._base_manager.order_by("pk")
        if world.has_tenant(model):
            rows = rows.filter(tenant_id=of.of.pk)
        elif label == "workqueue.Tenant":
            rows = rows.filter(pk=of.of.pk)
        else:
            rows = rows.filter(pk__in=[row.pk for row in of.rows[label]])
        found[label] = list(rows.values_list())
    return found


def test_methods_that_no_page_knows_are_refused_and_never_an_error(
    mine: World, theirs: World
):
    client = browser(reader(mine.of, EVERYTHING, "administrator"))
    before = fingerprint(theirs)
    for each in walk.pages():
        for address in each.addresses(theirs):
            for method in ("put", "patch", "delete", "options", "trace"):
                response = getattr(client, method)(address)
                assert response.status_code < 500, (method, address)
                assert CANARY not in body(response).replace(address, ""), address
    assert fingerprint(theirs) == before


def test_a_stranger_is_asked_to_sign_in_and_told_nothing(
    theirs: World, platform: World
):
    client = Client(raise_request_exception=False)
    for each in walk.pages():
        for address in (*each.addresses(theirs), *each.addresses(platform)):
            for method in ("get", "post"):
                response = getattr(client, method)(address)
                if each.name in ("admin:login", "admin:logout") or not each.name:
                    assert response.status_code < 500
                else:
                    assert response.status_code == 302, address
                    assert "/admin/login/" in response["Location"]
                assert CANARY not in body(response).replace(address, "")


def test_suggestions_and_searches_find_ones_own_alone(
    mine: World, theirs: World, platform: World
):
    client = browser(reader(mine.of, EVERYTHING, "administrator"))
    for model in apps.get_models():
        for each in model._meta.get_fields():
            if isinstance(each, models.ForeignKey | models.ManyToManyField):
                asked = {
                    "app_label": model._meta.app_label,
                    "model_name": model._meta.model_name,
                    "field_name": each.name,
                    "term": "",
                }
                silent(client.get("/admin/autocomplete/", asked), str(asked))
    for each_page in walk.pages():
        if each_page.arguments or not each_page.name:
            continue
        for name in ("q", "text", "o", "tenant", "error", "who", "subject"):
            # A part of the planted text that is not the word that is looked for.
            address = each_page.addresses(mine)[0]
            silent(client.get(address, {name: "planted"}), address)


def everything() -> dict[str, Any]:
    """Every row of the database but sessions."""
    return {
        model._meta.label: list(model._base_manager.order_by("pk").values_list())
        for model in apps.get_models(include_auto_created=True)
        if model._meta.label != "sessions.Session"
    }


def test_no_get_changes_anything(mine: World, platform: World):
    client = browser(factories.superuser())
    before = everything()
    for each in walk.pages():
        for address in {*each.addresses(mine), *each.addresses(platform)}:
            client.get(address)
            client.head(address)
    assert everything() == before


@pytest.mark.parametrize(
    ("group", "role", "place"),
    [
        (roles.VIEWER, "viewer", "acme"),
        (roles.OPERATOR, "operator", "acme"),
        (roles.TENANT_ADMINISTRATOR, "administrator", "acme"),
        (roles.PLATFORM_ADMINISTRATOR, "viewer", "acme"),
        (roles.VIEWER, "viewer", "platform"),
        (roles.SCHEDULER_MANAGER, "operator", "platform"),
        (roles.PLATFORM_ADMINISTRATOR, "administrator", "platform"),
    ],
)
def test_no_link_or_button_leads_where_its_reader_is_refused(
    mine: World, platform: World, group: str, role: str, place: str
):
    of = mine.of if place == "acme" else factories.platform()
    client = browser(reader(of, group, role))
    seen: set[str] = set()
    for each in walk.pages():
        for address in each.addresses(mine):
            response = client.get(address)
            if response.status_code != 200 or "html" not in response["Content-Type"]:
                continue
            for link in links(response.content.decode()) - seen:
                seen.add(link)
                answer = client.get(link)
                body(answer)
                if link.endswith("/download/"):
                    continue  # no file lies where the planted row says
                assert answer.status_code not in (403, 404), (address, link)
                assert answer.status_code < 500, (address, link)


def links(html: str) -> set[str]:
    """Where its links lead, those that look like buttons too."""
    found = set(re.findall(r'(?:href|hx-get)="(/admin/[^"#]*)', html))
    return {
        one.replace("&amp;", "&")
        for one in found
        if not re.match(r"/admin/(logout|jsi18n)/", one)
    }


def test_every_page_of_our_own_says_who_may_open_it():
    unguarded = [
        each.route
        for each in walk.pages()
        if each.name.startswith("admin:")
        and each.view.__module__.split(".")[0] in ("audit", "workqueue", "scheduler")
        and not isinstance(getattr(each.view, "model_admin", None), object)
        and page.guard_of(each.view) is None
    ]
    assert unguarded == []
    ours = [one for one in site._pages() if page.guard_of(one.callback) is None]  # type: ignore[attr-defined]
    assert ours == []


def test_a_page_with_an_id_that_the_walk_cannot_make_is_not_passed_over(mine: World):
    odd = walk.Page(name="admin:odd", route="odd/", arguments=("riddle_id",), view=None)
    with pytest.raises(AssertionError, match=r"tests/walk\.py"):
        odd.addresses(mine)


def test_every_table_of_a_tenant_is_planted(theirs: World):
    there = {model._meta.label for model in world.ours() if world.has_tenant(model)}
    assert there <= set(theirs.rows)
    wordless = {"archival.ArchivalPolicy", "workqueue.Membership"}  # only choices
    for label in there - wordless:
        rows = apps.get_model(label)._base_manager.values()
        assert any(CANARY in str(row) for row in rows), label


def test_somebody_of_the_platform_does_see_what_was_planted(theirs: World):
    """The word would be found where it is shown: the walk above is not blind."""
    client = screens.signed_in(factories.superuser())
    seen = sum(
        CANARY in body(client.get(address))
        for each in walk.pages()
        for address in each.addresses(theirs)
    )
    assert seen > 15
