"""The children of `start`, as real processes that obey, die, and refuse to end."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.once

SUPERVISE = """
import errno, json, logging, os, subprocess, sys
from pathlib import Path
from project.modes import Process
from project import supervise

logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
supervise.FIRST_BACK_OFF, supervise.MARGIN, supervise.AT_ONCE = 0.1, 0.3, 0.3
supervise.HURRY = 0.1
children = [Process(name=n, command=(sys.executable, "-uc", code), last=last) for n, code, last in json.loads(sys.argv[1])]
on_drain = lambda: None
exec(sys.argv[3])
sys.exit(supervise.Supervisor(children, environment=dict(os.environ), folder=Path("."), drain=float(sys.argv[2]), on_drain=on_drain).run())
"""
# The first process cannot be made: the system has too many.
TOO_MANY = """
popen = subprocess.Popen
def once(*_, **__):
    subprocess.Popen = popen
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
subprocess.Popen = once
"""
HEAD = "import os, signal, sys, time\nsay = lambda *w: os.write(1, (' '.join(map(str, w)) + '\\n').encode())\n"
OBEYS = (
    HEAD
    + "signal.signal(signal.SIGTERM, lambda *_: (say(NAME, 'told'), sys.exit(0)))\nsay(NAME, 'runs')\nwhile True: time.sleep(60)"
)
STUBBORN = (
    HEAD
    + "signal.signal(signal.SIGTERM, lambda *_: say(NAME, 'told'))\nsay(NAME, 'runs')\nwhile True: time.sleep(60)"
)

# Ends only when it is told to hurry, as gunicorn with a request that goes on.
BUSY = STUBBORN.replace(
    "while True",
    "signal.signal(signal.SIGQUIT, lambda *_: (say(NAME, 'hurried'), sys.exit(0)))\nwhile True",
)


class Supervised:
    def __init__(
        self,
        tmp_path: Path,
        *children: tuple[str, str, bool],
        drain: float = 5,
        first: str = "",
    ) -> None:
        self.log = tmp_path / "log"
        named = [(n, code.replace("NAME", repr(n)), last) for n, code, last in children]
        with self.log.open("w") as out:
            self.popen = subprocess.Popen(
                [sys.executable, "-c", SUPERVISE, json.dumps(named), str(drain), first],
                stdout=out,
                stderr=out,
                cwd=ROOT,
            )

    def says(self, text: str, times: int = 1) -> None:
        wait_until(
            lambda: self.text.count(text) >= times,
            within=15,
            what=f"{text!r} in {self.text}",
        )

    @property
    def text(self) -> str:
        return self.log.read_text()

    def at(self, text: str) -> int:
        assert text in self.text, self.text
        return self.text.index(text)


@pytest.fixture
def supervise(tmp_path):
    started = []

    def start(*children: tuple[str, str, bool], **values: Any) -> Supervised:
        started.append(Supervised(tmp_path, *children, **values))
        return started[-1]

    yield start
    for one in started:
        with_children = [one.popen.pid]
        if psutil.pid_exists(one.popen.pid):
            with_children += [
                c.pid for c in psutil.Process(one.popen.pid).children(recursive=True)
            ]
        for pid in with_children:
            if psutil.pid_exists(pid):
                psutil.Process(pid).kill()
        one.popen.wait(10)


def test_the_web_process_is_stopped_last(supervise):
    one = supervise(("web", OBEYS, True), ("worker", OBEYS, False))
    one.says("web runs")
    one.says("worker runs")
    one.popen.terminate()
    assert one.popen.wait(10) == 0
    assert one.at("worker told") < one.at("process=worker ended") < one.at("web told")


def test_a_request_that_goes_on_holds_up_the_end_no_longer_than_the_drain(supervise):
    one = supervise(("web", BUSY, True), ("worker", OBEYS, False), drain=0.3)
    one.says("web runs")
    one.says("worker runs")
    one.popen.terminate()
    assert one.popen.wait(10) == 0, "it was killed"
    assert one.at("web told") < one.at("web hurried")


def test_ctrl_c_is_the_same(supervise):
    one = supervise(("worker", OBEYS, False))
    one.says("worker runs")
    one.popen.send_signal(signal.SIGINT)
    assert one.popen.wait(10) == 0
    assert one.text.count("worker told") == 1


def test_a_child_that_died_is_started_again_and_the_reason_logged(supervise):
    one = supervise(
        ("worker", HEAD + "say('born'); sys.exit(3)", False), ("web", OBEYS, True)
    )
    one.says("born", times=3)
    one.says("process=worker ended: exit code 3; started again in 0 s")
    one.popen.terminate()
    assert one.popen.wait(10) == 0


def test_a_child_that_cannot_be_started_is_started_later_and_the_reason_logged(
    supervise,
):
    one = supervise(("worker", OBEYS, False), ("web", OBEYS, True), first=TOO_MANY)
    one.says("web runs")
    one.says(
        "process=worker could not be started: [Errno 11] Resource temporarily unavailable; tried again in 0 s"
    )
    one.says("worker runs")
    one.popen.terminate()
    assert one.popen.wait(10) == 0


def test_what_cannot_be_said_at_the_drain_keeps_nobody_from_draining(supervise):
    one = supervise(
        ("worker", OBEYS, False),
        ("web", OBEYS, True),
        first="on_drain = Path('/nowhere/draining').touch",
    )
    one.says("worker runs")
    one.says("web runs")
    one.popen.terminate()
    assert one.popen.wait(10) == 0
    assert "worker told" in one.text
    assert "No such file or directory: '/nowhere/draining'" in one.text


def test_a_killed_child_is_named_with_its_signal(supervise):
    one = supervise(("worker", HEAD + "say('born'); os.kill(os.getpid(), 9)", False))
    one.says("process=worker ended: killed by SIGKILL")
    one.says("born", times=2)


def test_a_child_whose_configuration_is_wrong_ends_everything(supervise):
    one = supervise(
        ("web", OBEYS, True), ("worker", HEAD + "time.sleep(0.5); sys.exit(78)", False)
    )
    assert one.popen.wait(15) == 78
    assert "started again" not in one.text


def test_a_child_that_does_not_end_in_time_is_killed_and_the_code_says_so(supervise):
    one = supervise(("worker", STUBBORN, False), ("web", OBEYS, True), drain=0.2)
    one.says("worker runs")
    one.says("web runs")
    one.popen.terminate()
    assert one.popen.wait(10) == 1
    assert "process=worker did not end in time: killed" in one.text


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once_and_the_code_names_it(supervise, second):
    one = supervise(("worker", STUBBORN, False), drain=600)
    one.says("worker runs")
    one.popen.terminate()
    one.says("worker told")
    one.popen.send_signal(second)
    assert one.popen.wait(10) == 128 + second
    assert one.text.count("worker told") == 2


def test_nobody_outlives_a_supervisor_that_was_killed(supervise):
    one = supervise(("worker", OBEYS, False))
    one.says("worker runs")
    (child,) = psutil.Process(one.popen.pid).children()
    one.popen.kill()
    wait_until(lambda: not child.is_running(), what="the child's end")
    assert "worker told" in one.text


def test_children_leave_no_zombie(supervise):
    one = supervise(("worker", HEAD + "say('born'); sys.exit(0)", False))
    one.says("born", times=3)
    one.popen.send_signal(signal.SIGUSR1)  # passed on, not the end
    for child in psutil.Process(one.popen.pid).children():
        wait_until(
            lambda child=child: (
                not child.is_running() or child.status() != psutil.STATUS_ZOMBIE
            ),
            what="the end of a zombie",
        )
