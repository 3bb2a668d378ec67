"""gunicorn: how the web process is served; and the beat of each of its processes.

Read by gunicorn itself (`-c python:project.gunicorn`), in its own process and without
an application. The beat is started after the fork and never at import, so that
management commands, tests and a preloading master have none: a scheduler or a beat
per import is a trap that others stepped into.
"""

import logging.config
import os
from datetime import timedelta
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

from django.conf import settings
from gunicorn.glogging import Logger

bind = f"{settings.BIND}:{settings.PORT}"
worker_class = "gthread"
workers = settings.WEB_PROCESSES
threads = settings.WEB_THREADS
preload_app = False  # a forked connection pool is shared memory of a socket
control_socket_disable = True  # would want a writable home
timeout = 60  # seconds without a sign of a process
graceful_timeout = 10  # seconds for requests under way
keepalive = 5  # seconds
max_requests, max_requests_jitter = 20_000, 2_000  # what leaks, leaks not for ever
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108 - a disk may stall
accesslog = "-" if settings.ACCESS_LOG else None

logging.config.dictConfig(settings.LOGGING)
MACHINES = ("/livez", "/readyz", "/startupz", "/metrics")  # every few seconds
_nodes: list[Any] = []  # of this process: none in gunicorn's own, one after the fork


class logger_class(Logger):  # noqa: N801 - gunicorn's name for it
    """Lines in the same format, on the same way as all others; none for probes."""

    def setup(self, cfg: Any) -> None:
        """Take gunicorn's own handlers away."""
        super().setup(cfg)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True

    def access(
        self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta
    ) -> None:
        """Log a request: its path without the query, which says what people look for."""
        path = environ["RAW_URI"].partition("?")[0]  # encoded: a line stays a line
        if not self.access_log_enabled or path in MACHINES:
            return
        request = {
            "method": environ["REQUEST_METHOD"],
            "path": path,
            "status": int(str(resp.status).partition(" ")[0]),
            "ms": request_time // timedelta(milliseconds=1),
            "bytes": getattr(resp, "sent", None),
            "client": environ.get("REMOTE_ADDR") or "-",
        }
        line = (
            "%(method)s %(path)s %(status)s in %(ms)s ms, %(bytes)s bytes to %(client)s"
        )
        self.access_log.info(line, request, extra=request)


def post_worker_init(worker: Any) -> None:
    """In the child, with the application loaded: report it as a node."""
    from project.web_node import WebNode  # not before Django has its apps

    _nodes.append(WebNode())
    _nodes[0].start()


def worker_exit(server: Any, worker: Any) -> None:
    """In the child, last."""
    for node in _nodes:
        node.stop()


def worker_int(worker: Any) -> None:
    """In the child, told to hurry: requests under way would hold up its exit without end."""
    worker_exit(None, worker)
    os._exit(0)
