"""Hostile text in every column, on every page, and into every field: it stays text.

Script, markup, direction overrides, NUL and a megabyte: planted in all that is shown, then
typed into all that can be typed into.
"""

import logging
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.db import connection, models, transaction
from django.test import Client
from django.utils.html import escape

from tests import factories, screens, walk, world
from tests.screens import HOSTILE, LIVE
from tests.world import World
from workqueue import live

pytestmark = [pytest.mark.walk, pytest.mark.django_db]
MEGABYTE = "x" * 1_000_000
LIST_AT_MOST = 600_000  # bytes of a page without an id: it shows many rows
PAGE_AT_MOST = 3_000_000  # bytes of one thing's page
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    live.forget()
    logging.disable()  # thousands of refusals
    yield
    logging.disable(logging.NOTSET)
    live.forget()


@pytest.fixture
def boss() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(factories.superuser("boss"))
    return client


def planted(text: str) -> list[World]:
    return [world.of_tenant(text, text), world.of_platform(text)]


def clean(response: Any, address: str) -> str:
    """The page, in which nothing that was planted is alive."""
    assert response.status_code < 500, address
    if response.streaming:
        b"".join(response.streaming_content)
        assert "attachment" in response["Content-Disposition"]
        assert response["X-Content-Type-Options"] == "nosniff"
        return ""
    html: str = response.content.decode()
    if "html" in response.get("Content-Type", ""):
        for mark in (*LIVE, "\x00", "\u2066"):
            assert mark not in html, (address, around(html, mark))
        assert "49" not in html.partition("{{7*7}}")[0][-2:], address
    return html


def around(html: str, mark: str) -> str:
    place = html.index(mark)
    return html[max(place - 200, 0) : place + 100]


@pytest.mark.once
@pytest.mark.parametrize("size", ["short", "a megabyte"])
def test_every_page_shows_hostile_text_as_text(boss: Client, size: str):
    text = HOSTILE if size == "short" else HOSTILE + MEGABYTE
    worlds = planted(text)
    shown = 0
    for each in walk.pages():
        for of in worlds:
            for address in each.addresses(of):
                response = boss.get(address)
                html = clean(response, address)
                shown += "&lt;script&gt;alert(1)" in html
                most = PAGE_AT_MOST if each.arguments else LIST_AT_MOST
                assert len(html) < most, (address, len(html))
    assert shown > 15


def test_what_is_asked_for_in_an_address_is_text_too(boss: Client):
    of = planted(HOSTILE)[0]
    for each in walk.pages():
        if not each.name or each.arguments:
            continue
        (address,) = each.addresses(of)
        html = clean(boss.get(address), address)
        names = {"older", "newer", "o", "p", "next", "q"}
        names |= {field.name for form in forms(html) for field in form.fields}
        for value in (HOSTILE, "\x00", "\ud800", "9" * 5_000, "-1", "x" * 50_000):
            asked = {name: value for name in names if name}
            clean(boss.get(address, as_typed(asked)), address)
            # One by one too, where a refusal of one could hide what another does.
            for name in names if value == "\x00" else ():
                clean(boss.get(address, as_typed({name: value})), f"{address}?{name}")


def as_typed(asked: dict[str, str]) -> dict[str, Any]:
    """As a browser sends it; a lone surrogate as the bytes it would be."""
    return {
        name: value.encode("utf-8", "surrogatepass") for name, value in asked.items()
    }


class Field:
    """A field of a form, with what it is sent with."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.name = attributes.get("name") or ""
        self.kind = (attributes.get("type") or tag).lower()
        self.value = attributes.get("value") or ""
        self.on = "checked" in attributes

    @property
    def typed(self) -> bool:
        """Whether people type into it."""
        return self.kind in ("text", "search", "textarea", "email", "number", "url")


class Form:
    """A form of a page."""

    def __init__(self, attributes: dict[str, str | None]) -> None:
        self.method = (attributes.get("method") or "get").lower()
        self.action = attributes.get("action") or ""
        self.fields: list[Field] = []

    def filled(self, text: str) -> dict[str, Any]:
        """As it would be sent, with the text in every field that is typed into."""
        sent: dict[str, Any] = {}
        for each in self.fields:
            if each.typed:
                sent[each.name] = text
            elif each.kind not in ("checkbox", "radio", "submit", "file") or each.on:
                sent[each.name] = each.value
        return {name: value for name, value in sent.items() if name}


class Forms(HTMLParser):
    """The forms of a page, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._select: Field | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "form":
            self.found.append(Form(attributes))
        elif tag in ("input", "textarea", "select", "button") and self.found:
            field = Field("submit" if tag == "button" else tag, attributes)
            self.found[-1].fields.append(field)
            self._select = field if tag == "select" else None
        elif tag == "option" and self._select and "selected" in attributes:
            self._select.value = attributes.get("value") or ""


def forms(html: str) -> list[Form]:
    parser = Forms()
    parser.feed(html)
    return parser.found


@pytest.mark.parametrize(
    "text",
    [
        f"{HOSTILE}\x00\ud800",
        *(
            pytest.param(t, marks=pytest.mark.once)
            for t in ("x" * 100_000, "-1", "\u0661")
        ),
    ],
)
def test_whatever_is_typed_into_a_form_is_refused_or_kept_as_text(
    boss: Client, text: str
):
    worlds = [world.of_tenant("acme", "acme"), world.of_platform("ours")]
    sent = came = 0
    for each in walk.pages():
        for address in {*each.addresses(worlds[0]), *each.addresses(worlds[1])}:
            for form in forms(clean(boss.get(address), address)):
                if form.method != "post" or "logout" in form.action:
                    continue
                body, kept = urlencode(as_typed(form.filled(text))), boss.cookies.copy()
                with transaction.atomic():
                    target = form.action if form.action.startswith("/") else address
                    answer = clean(boss.post(target, body, content_type=FORM), target)
                    came += escape(text[:40]) in answer
                    assert not columns_with("\x00"), target
                    transaction.set_rollback(True)
                boss.cookies = kept
                sent += 1
    assert sent > 15
    assert came > 5  # who refuses it shows it again: it was sent as it is


def columns_with(character: str) -> list[str]:
    """The columns of our tables in which a character stands; PostgreSQL refuses this one."""
    if connection.vendor == "postgresql":
        return []
    found = []
    for model in apps.get_models():
        texts = [
            each.name
            for each in model._meta.concrete_fields
            if isinstance(each, models.CharField | models.TextField)
        ]
        for row in model._base_manager.values_list(*texts) if texts else ():
            if any(character in str(value) for value in row):
                found.append(model._meta.label)
    return found


def test_the_texts_are_as_hostile_as_they_are_meant_to_be():
    assert all(mark in HOSTILE for mark in LIVE)
    assert screens.HOSTILE is HOSTILE
