"""metrics: /metrics, for Prometheus: who may read it, and how often it is read anew.

All figures come from the database, so every process of every replica gives the same
answer: one of them is enough to be scraped, and nothing is to be added up.
"""

import threading
from collections.abc import Iterator

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from audit import clock
from project import figures

FRESH = 5.0  # seconds
PATIENCE = 3.0  # seconds with somebody else's reading


def answer(request: HttpRequest) -> HttpResponse:
    """The figures, or why not."""
    if refusal := _refusal(request):
        return refusal
    try:
        found = _reading()
    except DatabaseError:
        return _told("the database does not answer", status=503)
    encode, kind = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(found), content_type=kind)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    token = settings.METRICS_TOKEN
    if not token and settings.PRODUCTION:
        return _told(
            "METRICS_TOKEN is not set: set it, and send it as bearer token", status=403
        )
    given = request.headers.get("Authorization", "")
    if token and not constant_time_compare(given, f"Bearer {token}"):
        refusal = _told("METRICS_TOKEN is wanted as bearer token", status=401)
        refusal["WWW-Authenticate"] = "Bearer"
        return refusal
    return None


def _told(text: str, *, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain")


class Reading(CollectorRegistry):
    """What was read at one moment; encoders ask it as they ask a registry."""

    def __init__(self, families: list[Metric]) -> None:
        super().__init__()
        self.families = families

    def collect(self) -> Iterator[Metric]:
        """All of it."""
        yield from self.families


_lock = threading.Lock()
_known: tuple[float, Reading] | None = None  # (clock.steady() of the reading, it)


def _reading() -> Reading:
    """Read at most once in FRESH, however many ask. DatabaseError: the one who reads still waits."""
    global _known
    # A database that hangs must not take one thread after the other of the web process.
    if not _lock.acquire(timeout=PATIENCE):
        raise DatabaseError
    try:
        if _known is None or clock.steady() - _known[0] >= FRESH:
            _known = (clock.steady(), Reading(list(figures.read(now=clock.now()))))
        return _known[1]
    finally:
        _lock.release()
