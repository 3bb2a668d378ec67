"""How the web process is served."""

from types import SimpleNamespace

import pytest

from project import gunicorn

pytestmark = pytest.mark.once


def test_nothing_is_shared_over_the_fork_and_nothing_wants_a_home():
    assert gunicorn.preload_app is False
    assert gunicorn.control_socket_disable is True
    assert gunicorn.worker_class == "gthread"


def test_probes_leave_no_line_in_the_access_log(monkeypatch):
    logged = []
    monkeypatch.setattr(
        gunicorn.Logger,
        "access",
        lambda self, resp, req, environ, request_time: logged.append(
            environ["PATH_INFO"]
        ),
    )
    log = object.__new__(gunicorn.logger_class)
    for path in ("/livez", "/readyz", "/startupz", "/admin/"):
        log.access(SimpleNamespace(), SimpleNamespace(), {"PATH_INFO": path}, None)
    assert logged == ["/admin/"]
