"""probes: is this process alive, ready, started? And /metrics. For machines; answered before anything else.

/livez needs no database: a database that is away is no reason to restart. /readyz says
no while draining, without a database, and until the schema is the one this release
needs. /startupz says yes once it was ready. Any host name, no TLS, no session, no log.
"""

from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse

from project import metrics, sql
from project.modes import MODES
from workqueue import schema

DRAINING = "draining"  # a file of this name in the wake folder: `start` is stopping

_schema_ready = False  # stays so: a schema is never taken back under a running process


class Probes:
    """The middleware that stands before all others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Called once."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a machine, or pass the request on."""
        answer = self._answer(request)
        if answer is None:
            return self.get_response(request)
        if request.method == "HEAD":
            answer.content = b""
        answer.headers.setdefault("Cache-Control", "no-store")
        answer.headers.setdefault("X-Content-Type-Options", "nosniff")
        return answer

    def _answer(self, request: HttpRequest) -> HttpResponse | None:
        probe = PROBES.get(request.path_info)
        scrape = request.path_info == METRICS and MODES[settings.FALCON_MODE].api
        if probe is None and not scrape:
            return None
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        if probe is None:
            return metrics.answer(request)
        problem = probe()
        return HttpResponse(
            f"{problem or 'ok'}\n",
            status=503 if problem else 200,
            content_type="text/plain",
        )


def alive() -> str:
    """Why this process should be restarted; "" = it should not."""
    return ""


def ready() -> str:
    """Why requests should go elsewhere; "" = they may come."""
    if settings.WAKE_SOCKET and (Path(settings.WAKE_SOCKET) / DRAINING).exists():
        return "draining: this installation is stopping"
    return started() or _database()


def started() -> str:
    """Why it has not started yet; "" = it has."""
    global _schema_ready
    if not _schema_ready:
        try:
            found = schema.look()
        except DatabaseError:
            return "the database does not answer"
        if found.missing or found.partial:
            return f"{len(found.missing)} migrations are not applied"
        _schema_ready = True
    return ""


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql.PING)
    except DatabaseError:
        return "the database does not answer"
    return ""


METRICS = "/metrics"
PROBES = {"/livez": alive, "/readyz": ready, "/startupz": started}
