"""A receiver of heartbeats: a real HTTP server on the loopback."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from audit import clock
from tests import factories
from workqueue.context import Context

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@dataclass
class Receiver:
    """What came in, and what is answered."""

    url: str = ""
    status: int = 200
    body: bytes = b"OK"
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [path.partition("?")[0] for path, _, _ in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            one.got.append((self.path, dict(self.headers), self.rfile.read(length)))
            self.send_response(one.status)
            self.send_header("Content-Length", str(len(one.body)))
            for name, value in one.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(one.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    one.url = f"http://127.0.0.1:{server.server_port}/ping/0b5f-secret"
    yield one
    server.shutdown()
    server.server_close()


@pytest.fixture
def ctx(db: None) -> Callable[..., Context]:
    def make(**values: Any) -> Context:
        platform = factories.platform()
        return Context(
            **{
                "key": "instance.report_heartbeat",
                "tenant_id": platform.pk,
                "tenant": platform.slug,
                "dedup_key": "",
                "now": NOW,
                "slot": NOW,
                "trigger": "slot",
                "attempt": 1,
                "claim_id": clock.uuid7(NOW),
                "deadline": NOW + timedelta(hours=1),
                "stopping": lambda: False,
                "progress": lambda _: None,
                **values,
            }
        )

    return make
