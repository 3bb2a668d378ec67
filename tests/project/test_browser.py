"""The admin in a real browser: nothing the policy refuses, nothing axe finds, both themes.

Runs once: what a browser sees does not depend on the database.
"""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from audit import clock, sum_up
from audit.models import NodeEvent
from scheduler.models import MasterLease, Schedule, Tick
from tests import factories
from tests.audit.conftest import recorded
from workqueue import live, pauses, registry
from workqueue.models import Tenant

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def site(
    live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., str]]:
    """An installation at work; gives the address of a page."""
    # Playwright keeps an event loop in this thread, in which Django would refuse to ask the database.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    now = clock.now()
    factories.superuser("operator")
    acme = factories.tenant("acme")
    server = factories.node("server", host="app-1", clock_skew_ms=6200)
    worker = {
        "slots": {
            "asked": 12,
            "used": 8,
            "why": "Its pool of 12 connections serves 8.",
        },
        "in_flight": 3,
        "loop": "running",
    }
    factories.node("worker", host="queue-2", report=worker)
    MasterLease.objects.update_or_create(
        id=1,
        defaults={
            "holder": server.id,
            "node": str(server),
            "term": 1,
            "since": now,
            "renewed_at": now,
            "expires_at": now + timedelta(hours=1),
        },
    )
    NodeEvent.objects.create(
        node_id=server.id,
        node=str(server),
        kind="server",
        type="elected",
        term=1,
        at=now,
        text="nobody before it",
    )
    key = next(iter(registry.rows()))
    Schedule.objects.create(key=key, since=now)
    Tick.objects.create(
        handler=key,
        trigger="slot",
        slot=now,
        at=now,
        term=1,
        enqueued=3,
        blocked=1,
        missed=2,
    )
    for outcome in ("succeeded", "partial", "failed", "abandoned"):
        run = recorded(
            handler=key,
            tenant_id=acme.id,
            tenant="acme",
            outcome=outcome,
            error="refused" if outcome == "failed" else "",
        )
    factories.item(acme, handler=key, tenant_slug="acme", enqueued_at=now)
    pauses.pause(
        scope="tenant",
        tenant=acme,
        reason="database move",
        who="operator",
        origin="admin",
    )
    live.refresh()
    arguments = {
        "node": [server.id],
        "run": [run.id],
        "timetable_row": [key],
        "timetable_run": [key],
        "timetable_cadence": [key],
    }
    yield (
        lambda name: (
            live_server.url + reverse(f"admin:{name}", args=arguments.get(name))
        )
    )
    live.forget()


@pytest.fixture
def visit(site: Callable[..., str], browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page as the operator, in a theme and a width; what the console said fails the test."""
    said: list[str] = []
    contexts = []

    def open_page(name: str) -> Page:
        context = browser.new_context(
            viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console",
            lambda message: (
                said.append(f"{name}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )
        page.on("pageerror", lambda problem: said.append(f"{name}: {problem}"))
        sign_in(page, site("login"))
        if name != "index":
            page.goto(site(name))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


def sign_in(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_label("User name").fill("operator")
    page.get_by_label("Password").fill("password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Operations")).to_be_visible()


def violations(page: Page, **options: Any) -> str:
    """What axe finds; "" where it finds nothing. It is put into a page once."""
    axe = Axe()
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe.axe_script)
    found = AxeResults(
        page.evaluate(
            "options => axe.run(document, options)",
            # Of style sheets and media that it would fetch first, no rule here asks.
            {"resultTypes": ["violations"], "preload": False, **options},
        )
    )
    return "" if found.violations_count == 0 else found.generate_report()


def problems(page: Page) -> dict[str, str]:
    """What is wrong with the page that is open: at a desk in the light, on a phone in the dark.

    A theme changes colours, a phone the width: asking axe for all of both twice finds
    the same and takes twice as long.
    """
    found = {"light": violations(page)}
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 900})
    width = page.evaluate("document.documentElement.scrollWidth")
    found["phone"] = f"{width} px wide" if width > 390 else ""
    narrow = ["color-contrast", "scrollable-region-focusable"]
    found["dark"] = violations(page, runOnly=narrow)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})
    return {where: what for where, what in found.items() if what}


def test_the_sign_in_page_is_in_order_with_an_error_on_it(site, browser):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(site("login"))
    page.get_by_label("User name").fill("operator")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    assert problems(page) == {}
    context.close()


def test_a_handler_is_run_now_with_a_reason(visit, site):
    page = visit("timetable")
    page.get_by_role("link", name="Run now\u2026").first.click()
    page.get_by_label("Why").fill("after the new framework")
    page.get_by_role("button", name="Run it now").click()
    expect(page.get_by_text("runs at the master\u2019s next pass")).to_be_visible()
    assert Schedule.objects.filter(run_requested_by="operator").exists()


def test_a_page_refreshes_itself_in_place_and_keeps_the_scroll(visit, site):
    page = visit("nodes")
    page.get_by_label("Refresh").select_option("1")
    page.evaluate("window.stays = true; window.scrollTo(0, 80)")
    factories.node("worker", host="just-started")
    expect(page.get_by_text("just-started", exact=True)).to_be_visible(timeout=15_000)
    assert page.evaluate("window.stays") is True


def test_the_choice_of_refreshing_is_remembered(visit, site):
    page = visit("index")
    page.get_by_label("Refresh").select_option("30")
    page.goto(site("nodes"))
    expect(page.get_by_label("Refresh")).to_have_value("30")


def test_the_menu_is_filtered_by_typing(visit):
    page = visit("index")
    page.get_by_label("Filter navigation items").fill("tick")
    menu = page.locator("#nav-sidebar")
    expect(menu.get_by_role("link", name="Ticks")).to_be_visible()
    expect(menu.get_by_role("link", name="Timetable")).to_be_hidden()


def test_on_a_phone_the_account_has_a_menu_that_needs_no_script(site, browser):
    context = browser.new_context(
        viewport={"width": 390, "height": 900}, java_script_enabled=False
    )
    page = context.new_page()
    sign_in(page, site("login"))
    pages = {"Preferences": "Preferences", "Change password": "Password change"}
    for name, heading in pages.items():
        page.locator("summary", has_text="operator").click()
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    context.close()


def test_the_menu_of_the_account_is_in_order_and_opens_the_list_of_keys(visit):
    page = visit("index")
    expect(page.locator("summary", has_text="operator")).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 900})
    page.locator("summary", has_text="operator").click()
    assert violations(page) == ""
    page.get_by_role("button", name="Keyboard").click()
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()


def test_a_name_without_a_space_pushes_nothing_out_of_view(visit, site):
    long = factories.tenant("s" * 64, name="N" * 200)
    factories.item(long, tenant_slug=long.slug)
    recorded(tenant_id=long.id, tenant=long.slug, finished_at=clock.now())
    page = visit("index")
    beyond = """() => [...document.querySelectorAll('.mr-scroll, .results, .mr-card')]
        .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className)"""
    for name in ("workqueue_tenant_changelist", "runs", "items"):
        page.goto(site(name))
        expect(page.get_by_text("s" * 64).first).to_be_visible()
        assert page.evaluate(beyond) == [], name
    page.set_viewport_size({"width": 390, "height": 900})
    for name in ("runs", "items"):  # the stock lists scroll there
        page.goto(site(name))
        assert page.evaluate(beyond) == [], name


def test_rows_are_walked_selected_and_opened_by_keys(visit, site):
    page = visit("items")
    page.goto(site("items"))
    page.keyboard.press("j")
    row = page.locator(".mr-table tbody tr").first
    expect(row.locator("a").first).to_be_focused()
    page.keyboard.press("x")
    expect(row.get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/items/\d+/"))


def test_keys_lead_to_search_to_other_pages_and_to_their_own_list(visit, site):
    page = visit("runs")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Text in error")).to_be_focused()
    page.keyboard.type("gi?")  # inside a field they are letters
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", name="Timetable", level=1)).to_be_visible()


def test_keys_can_be_switched_off_and_stay_off(visit, site):
    page = visit("runs")
    page.get_by_role("button", name="Keyboard").click()
    page.get_by_label("Keys are on").uncheck()
    page.get_by_role("button", name="Close").click()
    page.goto(site("ticks"))
    page.keyboard.press("?")
    page.keyboard.press("g")
    page.keyboard.press("i")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()
    expect(page.get_by_role("heading", name="Ticks", level=1)).to_be_visible()


def test_times_are_told_as_the_reader_chooses_at_the_top_of_any_page(visit, site):
    page = visit("runs")
    page.get_by_label("Times in").select_option("exact")
    expect(page.locator("tbody time").first).to_have_text(
        re.compile(r"(today|yesterday) \d\d:\d\d:\d\d")
    )
    page.goto(site("changes"))
    expect(page.get_by_label("Times in")).to_have_value("exact")


def test_a_hidden_tab_asks_for_nothing(visit, site):
    page = visit("nodes")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true})"
    )
    asked: list[str] = []
    page.on(
        "request",
        lambda one: asked.append(one.url) if "x-refresh" in one.headers else None,
    )
    page.get_by_label("Refresh").select_option("1")
    expect(page.locator("[data-updated]")).to_have_text(
        re.compile(r"[3-9]\s*s ago"), timeout=15_000
    )
    assert asked == []
    with page.expect_request(lambda one: "x-refresh" in one.headers):
        page.evaluate(
            "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"
        )


def test_a_stock_list_refreshes_its_cells_and_keeps_what_is_selected(visit, site):
    page = visit("workqueue_tenant_changelist")
    page.get_by_label("Refresh").select_option("1")
    page.evaluate("window.stays = true")
    Tenant.objects.filter(slug="acme").update(name="Acme and daughters")
    expect(page.get_by_text("Acme and daughters")).to_be_visible(timeout=15_000)
    assert page.evaluate("window.stays") is True


def test_the_charts_of_the_metrics_page_are_drawn_and_redrawn_after_a_refresh(
    visit, site
):
    sum_up.sum_up(clock.now() + timedelta(minutes=2), goes_on=lambda: True)
    page = visit("metrics")
    expect(page.locator(".mr-chart canvas")).to_have_count(4)
    with page.expect_response(lambda one: "x-refresh" in one.request.headers):
        page.keyboard.press("r")
    expect(page.locator(".mr-chart canvas")).to_have_count(4)
    page.get_by_text("Table", exact=True).first.click()
    expect(page.get_by_role("table", name="Runs that ended a minute")).to_be_visible()
