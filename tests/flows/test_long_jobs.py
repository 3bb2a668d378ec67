"""A newcomer's long jobs in a real browser, with a real job worker, Terraform and Packer behind it.

On PostgreSQL, as in production: what a browser sees does not depend on the database.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from jobworker.models import Deployment, Job
from tests.flows.test_operators_day import FAST, SOON, acme, page  # noqa: F401
from tests.processes import Process

pytestmark = [
    pytest.mark.race,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
]
SLOW = 120_000  # milliseconds that a program may take for its work


@pytest.fixture
def job_worker(spawn: Callable[..., Process], tmp_path: Path) -> Process:
    """One that has started."""
    started = spawn("runjobworker", env={**FAST, "JOB_ROOT": str(tmp_path / "jobs")})
    started.says("job runner: caps", within=60)
    return started


def needs(program: str) -> pytest.MarkDecorator:
    missing = shutil.which(program) is None
    return pytest.mark.skipif(missing, reason=f"{program} is not on PATH; install it")


def submit(page: Page, type: str, **given: str) -> None:  # noqa: F811
    """By the form, for acme."""
    page.goto("/admin/jobs/")
    page.get_by_role("link", name="New job…").first.click()
    page.get_by_role("link", name=type, exact=True).click()
    for name, value in given.items():
        page.get_by_label(name, exact=True).fill(value)
    page.get_by_label("Tenant").select_option("acme")
    page.get_by_role("button", name="Submit the job").click()


@needs("terraform")
def test_a_demo_cluster_is_submitted_and_terraforms_output_is_watched_live(
    page: Page,  # noqa: F811
    job_worker: Process,
):
    submit(page, "cluster_provision", name="demo")
    expect(page.get_by_role("heading", level=1)).to_contain_text("cluster_provision")
    # Nothing is reloaded from here on: the page follows.
    page.evaluate("window.stays = true")
    log = page.get_by_role("region", name="Lines")
    expect(log).to_contain_text("node 0 ready", timeout=SLOW)
    expect(page.locator("#lead")).to_contain_text("Succeeded", timeout=SLOW)
    expect(page.locator("#result")).to_contain_text("demo-1")
    expect(page.locator("#follow")).to_have_count(0)
    assert page.evaluate("window.stays") is True
    numbers = log.locator("div[id^=L] > a").all_inner_texts()
    assert [int(n.replace(",", "")) for n in numbers] == list(
        range(1, len(numbers) + 1)
    )
    made = Deployment.objects.get(name="demo")
    assert made.status == Deployment.Status.ACTIVE
    page.goto("/admin/jobworker/deployment/")
    page.get_by_role("link", name="demo", exact=True).click()
    page.get_by_role("link", name="Destroy…").click()
    expect(page.get_by_label("name", exact=True)).to_have_value("demo")


def test_a_changed_cap_is_followed_by_the_status_card(
    page: Page,  # noqa: F811
    job_worker: Process,
):
    page.goto("/admin/")
    page.get_by_role("link", name="Job Worker").first.click()
    card = page.locator("pre.mr-card-out")
    expect(card).to_contain_text("total 3", timeout=SOON)
    page.get_by_label("light", exact=True).fill("5")
    page.get_by_label("total", exact=True).fill("12")
    page.get_by_label("Why", exact=True).fill("CHG-7")
    page.get_by_role("button", name="Save version 1").click()
    applied = page.get_by_text("1 of 1 job worker applies version 1")
    expect(applied).to_be_visible(timeout=SOON)
    expect(card).to_contain_text("poll-only 5")
    expect(card).to_contain_text("reduced: total 12→3")
    expect(card).to_contain_text(
        "why: DB pool of 10 serves 3 concurrent job(s); raise DB_POOL_SIZE / DB_MAX_OVERFLOW to use 12"
    )
    page.get_by_role("link", name="connection budget").first.click()
    expect(page.get_by_text("runs 3 of 12 jobs awake")).to_be_visible()


@needs("packer")
def test_a_build_is_cancelled_and_the_page_says_what_was_stopped(
    page: Page,  # noqa: F811
    job_worker: Process,
):
    submit(
        page,
        "packer_build",
        name="golden",
        version="2026.11",
        variables='{"delay": 100}',
    )
    log = page.get_by_role("region", name="Lines")
    expect(log).to_contain_text("step 1, unpack", timeout=SLOW)
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_label("Why").fill("wrong version")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.get_by_text("It is told to stop.").first).to_be_visible()
    expect(page.locator("#lead")).to_contain_text("Cancelled", timeout=SLOW)
    expect(page.locator("#result")).to_be_visible()
    job = Job.objects.get()
    assert (job.status, job.cancel_requested_by) == (Job.Status.CANCELLED, "operator")


@needs("terraform")
def test_a_worker_that_is_killed_in_the_middle_leaves_a_job_that_says_what_happened(
    page: Page,  # noqa: F811
    job_worker: Process,
    spawn: Callable[..., Process],
    tmp_path: Path,
):
    submit(page, "cluster_provision", name="orion", variables='{"delay": 100}')
    expect(page.get_by_role("region", name="Lines")).to_contain_text(
        "booting node", timeout=SLOW
    )
    job_worker.popen.kill()
    spawn("runjobworker", env={**FAST, "JOB_ROOT": str(tmp_path / "jobs")})
    expect(page.locator("#lead")).to_contain_text("Failed", timeout=SLOW)
    expect(page.locator("#result")).to_contain_text(re.compile("stopped"))
    expect(page.get_by_role("link", name="Submit again…")).to_be_visible()
