"""Web processes are nodes, started after the fork; nothing else starts anything."""

import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import psutil
import pytest

from project.web_node import WebNode
from scheduler.models import MasterLease
from tests.processes import ROOT
from tests.waiting import wait_until
from workqueue import connections, node
from workqueue.models import Node

pytestmark = [pytest.mark.race, pytest.mark.postgresql]

GUNICORN = [
    sys.executable,
    "-m",
    "gunicorn",
    "-c",
    "python:project.gunicorn",
    "project.wsgi:application",
]


@pytest.fixture(params=[[], ["--preload"]], ids=["plain", "preload"])
def served(request, process_env, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    env = {**process_env, "PORT": str(port), "WEB_PROCESSES": "2"}
    with (tmp_path / "web.log").open("wb") as log:
        process = subprocess.Popen(
            [*GUNICORN, *request.param], env=env, cwd=ROOT, stdout=log, stderr=log
        )
    try:
        yield process, port, tmp_path / "web.log"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def test_each_web_process_is_a_node_and_none_is_a_scheduler(served):
    process, port, log = served
    nodes = Node.objects.filter(kind="web", status="running")
    wait_until(lambda: nodes.count() == 2, within=90, what=f"two nodes, see {log}")
    children = {child.pid for child in psutil.Process(process.pid).children()}
    assert set(nodes.values_list("pid", flat=True)) == children
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}/readyz", timeout=10
    ) as answer:
        assert answer.status == 200
    assert MasterLease.objects.get().holder is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert set(Node.objects.values_list("status", flat=True)) == {"stopped"}
    assert "Traceback" not in log.read_text()


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_stopped_before_it_registers_ends_in_order():
    WebNode().stop()
    assert not Node.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_stopped_while_it_registers_counts_as_stopped(monkeypatch):
    begun, stopping = threading.Event(), threading.Event()
    register = node.register

    def slow(**given):
        begun.set()
        stopping.wait(10)
        return register(**given)

    monkeypatch.setattr(node, "register", slow)
    monkeypatch.setattr(connections, "use_pool", lambda **_: None)
    web = WebNode()
    web.start()
    assert begun.wait(10)
    threading.Timer(0.1, stopping.set).start()
    web.stop()
    assert set(Node.objects.values_list("status", flat=True)) == {"stopped"}
