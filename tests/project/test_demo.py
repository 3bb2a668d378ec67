"""A newcomer's first half minute: `start --demo` in an empty folder, for real."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from project import upgrade
from project.demo import OutsideWorld
from project.environment import VARIABLES
from tests.processes import ROOT
from tests.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.race]

SOURCES = (
    "manage.py",
    "pyproject.toml",
    "project",
    "scheduler",
    "jobworker",
    "workqueue",
    "audit",
    "templates",
)
FINISHED = "SELECT handler, outcome, summary FROM audit_run WHERE node <> 'demo, 1'"


class Demo:
    """A copy of the project, and `start --demo` running in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in SOURCES:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, folder / name)
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        self.log = folder / "start.log"
        ours = {v.name for v in VARIABLES}
        clean = {
            k: v
            for k, v in os.environ.items()
            if k not in ours and not k.startswith("MILLRACE")
        }
        with self.log.open("wb") as out:
            self.popen = subprocess.Popen(
                [sys.executable, "manage.py", "start", "--demo"],
                cwd=folder,
                env={**clean, "PORT": str(self.port)},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=5
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read().decode()
        except OSError:
            return 0, ""

    def runs(self) -> dict[str, set[str]]:
        """Outcomes by handler, of what was run since the start."""
        found: dict[str, set[str]] = {}
        with closing(
            sqlite3.connect(
                f"file:{self.folder / 'millrace.sqlite3'}?mode=ro", uri=True
            )
        ) as database:
            for handler, outcome, _ in database.execute(FINISHED):
                found.setdefault(handler, set()).add(outcome)
        return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    one = Demo(tmp_path_factory.mktemp("demo"))
    yield one
    if one.popen.poll() is None:
        one.popen.send_signal(signal.SIGTERM)
        one.popen.send_signal(signal.SIGTERM)
        one.popen.wait(30)


def test_the_address_the_name_and_the_password_are_printed_once(demo):
    wait_until(lambda: "To stop" in demo.said, within=60, what="the banner")
    password = demo.said.split("Password")[1].split()[0]
    kept = (demo.folder / "millrace.private").read_text()
    assert f"ADMINISTRATOR_PASSWORD={password}" in kept
    assert f"http://localhost:{demo.port}/" in demo.said
    assert "admin" in demo.said


def test_every_handler_of_the_demo_finishes_runs_and_says_what_it_did(demo):
    expected = {
        "notifications.deliver",
        "archival.apply_policies",
        "instance.report_heartbeat",
    }
    wait_until(
        lambda: demo.runs().keys() >= expected,
        within=90,
        every=0.5,
        what=f"runs of {expected}",
    )
    assert "succeeded" in demo.runs()["archival.apply_policies"]
    assert demo.runs()["instance.report_heartbeat"] == {"succeeded"}


def test_the_mail_really_arrived_where_the_banner_says(demo):
    folder = demo.folder / "var" / "demo" / "mail"
    assert str(folder) in demo.said
    mails = wait_until(lambda: list(folder.glob("*.eml")), within=30, what="an e-mail")
    assert b"Message-ID:" in mails[0].read_bytes()
    heartbeats = (
        (demo.folder / "var" / "demo" / "heartbeats.jsonl").read_text().splitlines()
    )
    assert json.loads(heartbeats[0])


def test_the_pages_and_the_probes_answer(demo):
    assert wait_until(lambda: demo.get("/readyz"), within=30)[0] == 200
    assert demo.get("/livez") == (200, "ok\n")
    status, page = demo.get("/")
    assert status == 200
    assert "password" in page


def test_a_killed_worker_is_started_again(demo):
    pid = int(demo.said.split("process=worker pid=")[1].split()[0])
    os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: demo.said.count("started process=worker") == 2,
        within=20,
        what="another worker",
    )
    assert "process=worker ended: killed by SIGKILL" in demo.said


def test_sigterm_stops_everything_in_order_and_in_time(demo):
    began = time.monotonic()
    demo.popen.send_signal(signal.SIGTERM)
    assert demo.popen.wait(35) == 0, demo.said
    assert time.monotonic() - began < 30
    assert "Traceback" not in demo.said
    assert demo.said.index("process=scheduler ended") < demo.said.rindex(
        "process=web ended"
    )
    assert demo.get("/livez")[0] == 0


def test_a_second_demo_in_the_same_folder_is_refused(settings, tmp_path):
    settings.VAR = tmp_path
    first = OutsideWorld()
    with pytest.raises(
        upgrade.Refused, match="a demo runs in this folder already"
    ) as said:
        OutsideWorld()
    assert said.value.exit_code == 75
    first.close()
    OutsideWorld().close()
