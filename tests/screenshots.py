"""The pictures of docs/screens.md, by hand: `make screenshots` starts the demo and looks at it.

The demo runs in a folder of its own; nothing of it remains but the pictures.
"""

import os
import re
import socket
import tempfile
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

from tests.processes import ROOT, Process, run_manage
from tests.waiting import wait_until

FOLDER = ROOT / "docs" / "screens"
SIZE = {"width": 1280, "height": 800}  # px
# Name of the picture -> address below /admin/, theme.
PICTURES = {
    "overview": ("", "light"),
    "runs": ("audit/runs/", "light"),
    "servers": ("server-audit-logs/", "light"),
    "timetable": ("timetable/", "dark"),
    "settings": ("settings/worker-node-configuration/", "light"),
    "metrics": ("audit/metrics/?range=1h", "dark"),
    "job-worker": ("job-worker/", "light"),
    "jobs": ("jobs/", "light"),
}
# Job types and what is asked of them: something to see in the two last.
JOBS = (
    ("cluster_provision", "acme", '{"name": "demo", "nodes": 3}'),
    ("packer_build", "acme", '{"name": "golden", "version": "2026.11"}'),
    ("database_provision", "acme", '{"name": "ledger"}'),
)
SLOW = (
    "cluster_provision",
    "acme",
    '{"name": "orion", "nodes": 4, "variables": "{\\"delay\\": 60}"}',
)
PASSWORD = re.compile(r"Password\s+(\S+)")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def main() -> None:
    """Start, wait until there is something to see, look, stop."""
    with tempfile.TemporaryDirectory(prefix="millrace-") as name:
        folder = Path(name)
        port = _free_port()
        env = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{folder / 'millrace.sqlite3'}",
            "PORT": str(port),
            "ARCHIVE_ROOT": str(folder / "archive"),
            "JOB_ROOT": str(folder / "jobs"),
        }
        demo = Process(["start", "--demo"], env=env, log=folder / "log")
        try:
            found = wait_until(
                lambda: PASSWORD.search(demo.log), within=60, what="a password"
            )
            _look(f"http://localhost:{port}/admin/", found[1], env=env)
        finally:
            demo.terminate()
            demo.wait(within=60)


def _submit(type: str, tenant: str, params: str, *, env: dict[str, str]) -> None:
    arguments = ["submit", type, "--tenant", tenant, "--params", params]
    assert run_manage(arguments, env=env, timeout=60).returncode == 0


def _look(admin: str, password: str, *, env: dict[str, str]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
        wait_until(lambda: _opens(page, admin), within=180, every=1, what="the demo")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{admin}audit/metrics/?range=1h")
        # The sums of some minutes; the page refreshes itself until they are there.
        figures = page.locator(".mr-chart canvas").first
        figures.wait_for(timeout=300_000)  # ms
        for job in JOBS:
            _submit(*job, env=env)
        page.goto(f"{admin}jobs/?status=succeeded")
        wait_until(
            lambda: page.get_by_text("Succeeded").count() >= len(JOBS),
            within=120,
            what="the end of the jobs",
        )
        _submit(*SLOW, env=env)
        page.goto(f"{admin}jobs/")
        page.get_by_role("link", name="cluster_provision").first.click()
        page.get_by_text("booting node").first.wait_for(timeout=120_000)  # ms
        page.screenshot(path=FOLDER / "job.png")
        for name, (address, theme) in PICTURES.items():
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.goto(admin + address)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / f"{name}.png")
            print(f"{name}.png")
        browser.close()


def _opens(page: Page, address: str) -> bool:
    try:
        answer = page.goto(address)
    except Error:  # nobody listens yet
        return False
    return answer is not None and answer.ok


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
