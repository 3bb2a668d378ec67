"""An operator's work in a real browser, with real schedulers and workers behind it.

On PostgreSQL, as in production: what a browser sees does not depend on the database.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from audit import clock
from audit.models import Run
from scheduler.models import MasterLease
from tests import factories, screens
from tests.processes import Process
from tests.waiting import wait_until
from workqueue import live
from workqueue.models import Node, Tenant, WorkItem

pytestmark = [
    pytest.mark.race,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
]
SOON = 30_000  # milliseconds that a page may take to say what has happened
HANDLER = "notifications.deliver"
FAST = {"FALCON_SERVER_KEEP_ALIVE_SECONDS": "2"}  # a beat every 0.8 s


@pytest.fixture
def acme(transactional_db: None) -> Tenant:
    return factories.tenant("acme")


@pytest.fixture
def page(
    live_server: Any, browser: Browser, acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Page]:
    """Signed in, refreshing every second; what the console says fails the test."""
    # Playwright keeps an event loop in this thread, in which Django would refuse to ask the database.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    factories.superuser("operator")
    context = browser.new_context(
        base_url=live_server.url,
        viewport={"width": 1440, "height": 1600},
        reduced_motion="reduce",
    )
    context.add_init_script("localStorage.setItem('millrace.refresh', '1')")
    page, said = context.new_page(), []
    page.on(
        "console",
        lambda message: (
            said.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda problem: said.append(str(problem)))
    page.goto("/admin/login/")
    page.get_by_label("User name").fill("operator")
    page.get_by_label("Password").fill("password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    live.forget()
    yield page
    context.close()
    live.forget()
    assert said == []


@pytest.fixture
def workers(spawn: Callable[..., Process]) -> Callable[[int], list[Process]]:
    """Start so many workers."""

    def start(count: int) -> list[Process]:
        started = [spawn("runworker", env=FAST) for _ in range(count)]
        for process in started:
            process.says("worker started", within=60)
        return started

    return start


def test_a_changed_setting_is_seen_to_reach_every_process(
    page: Page, workers: Callable[[int], list[Process]]
):
    workers(2)
    page.goto("/admin/")
    page.get_by_role("link", name="Settings").first.click()
    page.get_by_label("Name, key or purpose").fill("worker node")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Edit").click()
    expect(
        page.get_by_text("2 of 2 worker processes apply the defaults")
    ).to_be_visible(timeout=SOON)
    page.get_by_label("WORKER_CONCURRENCY").fill("12")
    page.get_by_label("Why", exact=True).fill("Monday's scan wave, CHG-2240")
    page.get_by_role("button", name="Save version 1").click()
    applied = page.get_by_text("2 of 2 worker processes apply version 1")
    expect(applied).to_be_visible(timeout=SOON)
    table = page.get_by_role("table").filter(has_text="Reported")
    expect(table.get_by_text("12 items")).to_have_count(2, timeout=SOON)
    expect(page.get_by_text("Monday's scan wave, CHG-2240")).to_be_visible()


def test_a_paused_handler_says_on_its_items_why_nothing_runs(
    page: Page, acme: Tenant, workers: Callable[[int], list[Process]]
):
    workers(1)
    page.goto("/admin/timetable/")
    row = page.get_by_role("row").filter(has_text="Notification Handler")
    row.get_by_role("link", name="Pause…").click()
    page.get_by_label("Until").fill("2 h")
    page.get_by_label("Why").fill("mail server upgrade, CHG-2231")
    page.get_by_role("button", name="Pause").click()
    banner = page.get_by_role("status").filter(has_text="is paused until")
    expect(banner).to_contain_text("mail server upgrade, CHG-2231")
    screens.pending(acme, handler=HANDLER)
    page.goto("/admin/items/")
    expect(
        page.get_by_text("Waits because Notification Handler is paused")
    ).to_be_visible()
    assert WorkItem.objects.pending().count() == 1
    page.get_by_role("link", name="Resume…").click()
    page.get_by_label("Why").fill("the upgrade is done")
    page.get_by_role("button", name=re.compile("Resume")).click()
    expect(page.get_by_text("is resumed")).to_be_visible()
    wait_until(lambda: Run.objects.filter(handler=HANDLER).exists(), within=30)
    page.goto("/admin/items/")
    expect(page.get_by_text("Nothing waits, and nothing executes")).to_be_visible(
        timeout=SOON
    )


def test_all_failed_runs_that_match_are_retried_with_a_result_each(
    page: Page, acme: Tenant, workers: Callable[[int], list[Process]]
):
    workers(1)
    error = "connection refused by mail.internal:587"
    for tenant in (acme, factories.tenant("granite"), factories.tenant("fjord")):
        screens.run(tenant, handler=HANDLER, outcome="failed", error=error)
    screens.run(acme, handler=HANDLER, outcome="failed", error=error)
    page.goto("/admin/audit/runs/")
    page.get_by_role("link", name="Failures").click()
    page.get_by_role("link", name="Retry…").click()
    expect(page.get_by_role("heading", name="Retry 4 runs?")).to_be_visible()
    expect(page.get_by_text("4 runs, of 3 items")).to_be_visible()
    page.get_by_label("Why").fill("the mail server is back, CHG-2241")
    page.get_by_role("button", name="Retry 4 runs").click()
    expect(page.get_by_text("4 of 4 rows")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("link", name="Done 3")).to_be_visible()
    expect(page.get_by_role("link", name="Skipped 1")).to_be_visible()
    expect(
        page.get_by_text("the same item was enqueued for a later run of it")
    ).to_be_visible()
    again = Run.objects.filter(handler=HANDLER, trigger="operator")
    wait_until(lambda: again.count() == 3, within=30, what="three runs")
    assert set(again.values_list("outcome", flat=True)) == {"succeeded"}


def test_the_election_history_tells_of_a_take_over(
    page: Page, spawn: Callable[..., Process]
):
    started = [spawn("runscheduler", env=FAST) for _ in range(2)]
    for process in started:
        process.says("scheduler started", within=60)

    def holder(of_term: int) -> Node | None:
        lease = MasterLease.objects.filter(term=of_term).first()
        return (
            Node.objects.filter(id=lease.holder).first()
            if lease and lease.holder
            else None
        )

    first = wait_until(lambda: holder(1), within=30, what="a master")
    next(one for one in started if one.pid == first.pid).kill()
    second = wait_until(lambda: holder(2), within=30, what="a second master")
    page.goto("/admin/server-audit-logs/")
    master = page.get_by_role("row").filter(has_text="Yes, term 2")
    expect(master).to_contain_text(f"pid {second.pid}")
    drawn = page.get_by_role("region", name="Terms, drawn")
    expect(drawn).to_contain_text("no master for")
    master.get_by_role("link", name="View Execution Logs").click()
    log = page.get_by_role("row").filter(has_text="Became master")
    expect(log).to_contain_text("2")
    expect(log).to_contain_text(re.compile("had not renewed|silent|no master for"))


def test_last_nights_failures_of_one_tenant_are_found_from_the_overview(
    page: Page, acme: Tenant
):
    night = at_night()
    granite = factories.tenant("granite")
    error = "connection refused by mail.internal:587"
    bad = {"handler": HANDLER, "outcome": "failed", "finished_at": night}
    screens.run(acme, **bad, error=f"{error}, batch 1")
    screens.run(granite, **bad, error=f"{error}, batch 2")
    screens.run(acme, handler=HANDLER, outcome="failed", error="of this hour")
    page.goto("/admin/")
    card = page.get_by_role("region", name="Failures in the last 24 h")
    group = card.get_by_role("row").filter(has_text=error)
    expect(group).to_contain_text("2 tenants")
    group.get_by_role("link", name="2").click()
    expect(page.get_by_text("2 runs match")).to_be_visible()
    page.get_by_text("Add filter…").click()
    panel = page.locator(".mr-panel")
    panel.get_by_label("Tenant").fill("acme")
    panel.get_by_label("Finished since").fill(local(night - timedelta(hours=1)))
    panel.get_by_label("Finished before").fill(local(night + timedelta(hours=1)))
    panel.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("1 run matches")).to_be_visible()
    expect(page.get_by_text(f"{error}, batch 1")).to_be_visible()
    expect(page.get_by_text("batch 2")).to_have_count(0)
    address = page.url
    page.goto(address)
    expect(page.get_by_text(f"{error}, batch 1")).to_be_visible()


def at_night() -> datetime:
    """A moment some hours back, within the overview's day."""
    return clock.now() - timedelta(hours=9)


def local(moment: datetime) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"
