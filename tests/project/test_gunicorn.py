"""How the web process is served."""

import json
import logging
from datetime import timedelta
from types import SimpleNamespace

import pytest

from project import gunicorn
from project.logs import Json

pytestmark = pytest.mark.once


def test_nothing_is_shared_over_the_fork_and_nothing_wants_a_home():
    assert gunicorn.preload_app is False
    assert gunicorn.control_socket_disable is True
    assert gunicorn.worker_class == "gthread"


def access(address: str, **environ: str) -> None:
    """Let the logger of gunicorn write the line of a request."""
    log = object.__new__(gunicorn.logger_class)
    log.access_log = logging.getLogger("gunicorn.access")
    log._access_log_enabled = True
    log.access(
        SimpleNamespace(status="302 Found", sent=41),
        SimpleNamespace(),
        {"REQUEST_METHOD": "GET", "RAW_URI": address, "REMOTE_ADDR": "10.0.0.9"}
        | environ,
        timedelta(milliseconds=12.7),
    )


def test_a_request_is_a_line_like_all_others_with_its_fields_for_machines(caplog):
    caplog.set_level(logging.INFO)
    access("/admin/runs/?text=salary")
    assert caplog.messages == ["GET /admin/runs/ 302 in 12 ms, 41 bytes to 10.0.0.9"]
    entry = json.loads(Json().format(caplog.records[0]))
    assert (entry["method"], entry["path"], entry["status"]) == (
        "GET",
        "/admin/runs/",
        302,
    )
    assert (entry["ms"], entry["bytes"], entry["client"]) == (12, 41, "10.0.0.9")


def test_nobody_writes_a_line_of_the_log_by_asking_for_a_strange_address(caplog):
    caplog.set_level(logging.INFO)
    access("/a%0Ab", PATH_INFO="/a\nb")
    assert caplog.messages[0].startswith("GET /a%0Ab 302")


def test_probes_and_scrapes_leave_no_line_in_the_access_log(caplog):
    caplog.set_level(logging.INFO)
    for path in ("/livez", "/readyz", "/startupz", "/metrics"):
        access(path)
    assert caplog.messages == []
