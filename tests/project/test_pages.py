"""Every page of the admin, found in the map of addresses: both themes, a desk and a phone.

A page that is added is walked without a word here. Only where its address needs
something that is found nowhere below (the row of a new table, a new kind of argument)
does the first test say what to add. Runs once: what a browser sees does not depend on
the database.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.exceptions import ObjectDoesNotExist
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils.text import slugify
from playwright.sync_api import Page, expect

from audit import clock
from audit.models import Run
from jobworker import registry as job_registry
from jobworker.models import Deployment, Image, Job
from scheduler.handlers.archival.models import ArchivalPolicy, ArchiveFile
from scheduler.handlers.notifications.models import WebNotification
from scheduler.handlers.operations.models import BulkOperation
from scheduler.models import Schedule
from tests import factories
from tests.jobworker import screening
from tests.project.test_browser import problems, site, visit  # noqa: F401
from tests.scheduler.handlers.notifications import arrange
from tests.screens import signed_in
from workqueue import policy
from workqueue.models import Membership, Node, Pause, Setting, Tenant, WorkItem
from workqueue.policy import WORKER_NODE_CONFIGURATION

pytestmark = [
    pytest.mark.walk,
    pytest.mark.once,
    pytest.mark.django_db(transaction=True),
]

# What an argument of this name stands for. `object_id`, `pk` and whatever the page of a
# model calls it else: its first row.
ARGUMENTS: dict[str, Callable[[], Any]] = {
    "claim_id": lambda: Run.objects.latest("finished_at").id,
    "form": lambda: "csv",  # of an export
    "item_id": lambda: WorkItem.objects.latest("id").pk,
    "key": lambda: Schedule.objects.latest("pk").key,
    "job_id": lambda: Job.objects.latest("created_at").pk,
    "pause_id": lambda: Pause.objects.latest("id").pk,
    "slug": lambda: slugify(WORKER_NODE_CONFIGURATION.name),
    "type": lambda: next(iter(job_registry.types())),
    "tenant_id": lambda: Tenant.objects.filter(is_platform=False).latest("id").pk,
    "version": lambda: Setting.objects.earliest("version").version,
    "view_id": lambda: 1,  # only ever posted to
    "operation.id": lambda: BulkOperation.objects.latest("id").pk,
    "operation_stop.id": lambda: BulkOperation.objects.latest("id").pk,
    "operation_go_on.id": lambda: BulkOperation.objects.latest("id").pk,
    "node.id": lambda: Node.objects.latest("started_at").pk,
}
# What pages that ask before they act are asked for.
QUERIES: dict[str, Callable[[], str]] = {
    "items_act": lambda: f"?verb=cancel&item={WorkItem.objects.latest('id').pk}",
    "operation_begin": lambda: "?of=items&verb=cancel",
}
# No pages: the end of a session, parts for scripts, and addresses made of other addresses.
NO_PAGES = {"logout", "jsi18n", "autocomplete", "view_on_site", "app_list"}
# What answers with these is no page: open to nobody, or a verb.
NOT_SHOWN = {403, 405}


@dataclass(frozen=True, slots=True)
class Found:
    """An address of the admin."""

    name: str
    address: str  # "" where an argument is unknown
    unknown: str = ""


@pytest.fixture
def rows(site: Callable[..., str]) -> None:  # noqa: F811
    """A row of each table that has pages of its own, beside what `site` makes."""
    acme = Tenant.objects.get(slug="acme")
    operator = User.objects.get(username="operator")
    message = arrange.due(arrange.email(acme))
    WebNotification.objects.create(
        tenant=acme,
        user=operator,
        notification=message,
        title="A channel was disabled",
        created_at=clock.now(),
    )
    ArchivalPolicy.objects.create(tenant=acme, record_type="runs", keep_days=90)
    ArchiveFile.objects.create(
        tenant_id=acme.pk,
        tenant="acme",
        record_type="runs",
        path="acme/runs-2026-10.jsonl.gz",
        first_id="1",
        last_id="9",
        min_at=clock.now(),
        max_at=clock.now(),
        rows=9,
        bytes=900,
        sha256_raw="0" * 64,
        sha256_file="0" * 64,
        created_at=clock.now(),
    )
    Membership.objects.create(user=factories.user("anna"), tenant=acme, role="operator")
    BulkOperation.objects.create(
        tenant=factories.platform(),
        verb="cancel",
        of="items",
        asked_at=clock.now(),
        at_most=10,
        expected=3,
        who="operator",
        why="the provider is down",
    )
    screening.worker(reduced=[{"what": "total", "from": 12, "to": 3, "why": "pool"}])
    screening.pending(acme)
    screening.ended(acme)
    deployment = Deployment.objects.create(
        tenant=acme,
        tenant_slug="acme",
        kind="cluster",
        name="orion",
        module="offline",
        variables={"nodes": 2},
        outputs={"nodes": ["orion-0", "orion-1"]},
        secret_outputs='{"kubeconfig": "apiVersion: v1"}',
        status="active",
        last_job=clock.uuid7(),
        created_at=clock.now(),
        created_by="operator",
        changed_at=clock.now(),
    )
    Image.objects.create(
        tenant=acme,
        tenant_slug="acme",
        name="golden",
        version="2026.11",
        build="golden.file.rootfs",
        provider="packer.file",
        files=[{"path": "web1.img", "size": 4096, "sha256": "0" * 64}],
        source_job=deployment.last_job,
        created_at=clock.now(),
        created_by="operator",
    )
    screening.running(acme, progress_at=clock.now() - timedelta(minutes=12))
    AccessAttempt.objects.create(
        username="mallory", ip_address="203.0.113.9", failures_since_start=5
    )
    Group.objects.get_or_create(name="Night shift")
    for seconds in (20, 30):
        values = {"WORKER_RECLAIM_INTERVAL_MS": seconds * 1000}
        policy.save(values, who="operator", origin="admin", why="trial")


@pytest.fixture
def pages(rows: None) -> list[str]:
    """The addresses of all pages, as somebody who may do everything sees them."""
    found = list(addresses())
    assert {one.name: one.unknown for one in found if one.unknown} == {}, (
        "say in tests/project/test_pages.py what to fill in: a line of ARGUMENTS, or a row in `rows`"
    )
    reader = signed_in(User.objects.get(username="operator"))
    shown, wrong = [], {}
    for one in found:
        answer = reader.get(one.address)
        if answer.status_code == 200:
            if is_page(answer):
                shown.append(one.address)
        elif answer.status_code >= 400 and answer.status_code not in (
            NOT_SHOWN | MISSING.get(one.name, set())
        ):
            wrong[one.address] = answer.status_code
    assert wrong == {}
    return shown


# What the rows above do not have: a file on a disk.
MISSING = {"archival_archivefile_download": {404}}


def test_no_page_is_missing_from_the_walk(pages: list[str]) -> None:
    for name in (
        "index",
        "runs",
        "metrics",
        "preferences",
        "workqueue_tenant_changelist",
    ):
        assert reverse(f"admin:{name}") in pages
    assert len(pages) >= 50


def test_every_page_is_in_order_in_both_themes_at_a_desk_and_on_a_phone(
    pages: list[str],
    visit: Callable[..., Page],  # noqa: F811
    live_server: Any,
) -> None:
    page, elsewhere, wrong = visit("index"), [], {}
    here = urlsplit(live_server.url).netloc
    page.on(
        "request",
        lambda asked: (
            elsewhere.append(asked.url)
            if urlsplit(asked.url).netloc not in ("", here)
            else None
        ),
    )
    for address in pages:
        page.goto(live_server.url + address)
        expect(page.locator("main h1")).to_be_visible()
        if found := problems(page):
            wrong[address] = found
    assert wrong == {}
    assert elsewhere == []


# A day and a time without a zone: what a reader would have to convert by himself.
MOMENT = re.compile(
    r"(?:today|yesterday|\d{4}-\d\d-\d\d[T ]?|\d{1,2} [A-Z][a-z]{2}(?: \d{4})?|[A-Z][a-z]+\.? \d{1,2}, \d{4},?)"
    r"\s+\d{1,2}:\d{2}(?!(?::\d\d)?(?:\.\d+)?(?:\s+UTC|[+-]\d\d:\d\d))"
)
# What stands in these is no moment on the page, or says itself what it is.
APART = re.compile(r"<(time|pre|textarea|script|code|option)\b.*?</\1>|<[^>]*>", re.S)


def test_every_moment_on_every_page_can_be_read_by_a_machine(pages: list[str]) -> None:
    reader = signed_in(User.objects.get(username="operator"))
    bare = {}
    for address in pages:
        text = reader.get(address).content.decode()
        main = text.partition("<main")[2].partition("</main>")[0]
        if found := MOMENT.findall(APART.sub(" ", main)):
            bare[address] = found
    assert bare == {}


def addresses() -> Iterator[Found]:
    """Every address below the admin with its arguments filled in."""
    _, admin = get_resolver().namespace_dict["admin"]
    for pattern in _patterns(admin.url_patterns):
        if (name := pattern.name) is None or name in NO_PAGES:
            continue
        arguments, unknown = {}, ""
        for argument in pattern.pattern.converters:
            try:
                arguments[argument] = _value(name, argument)
            except (LookupError, ObjectDoesNotExist) as problem:
                unknown = f"{argument}: {problem}"
        address = "" if unknown else reverse(f"admin:{name}", kwargs=arguments)
        if name in QUERIES:
            address += QUERIES[name]()
        yield Found(name=name, address=address, unknown=unknown)


def _patterns(these: list[Any]) -> Iterator[URLPattern]:
    for one in these:
        if isinstance(one, URLResolver):
            yield from _patterns(one.url_patterns)
        else:
            yield one


def _value(name: str, argument: str) -> Any:
    for known in (f"{name}.{argument}", argument):
        if known in ARGUMENTS:
            return ARGUMENTS[known]()
    app, model, *_ = [*name.split("_"), ""]
    return apps.get_model(app, model)._default_manager.latest("pk").pk


def is_page(answer: Any) -> bool:
    """Whether it is a whole page: no download, and no part that a script asks for."""
    return answer["Content-Type"].startswith("text/html") and (
        b"<html" in answer.content
    )
