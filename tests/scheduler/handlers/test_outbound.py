import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from scheduler.handlers import outbound

pytestmark = pytest.mark.once

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
type Reply = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def serve() -> Iterator[Callable[[Reply], str]]:
    """A real HTTP server on the loopback whose answer the test writes; returns its URL."""
    servers: list[ThreadingHTTPServer] = []

    def start(reply: Reply) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                reply(self)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def say(status: int, body: bytes = b"", **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def test_a_post_carries_its_json_its_headers_and_who_we_are(
    serve: Callable[[Reply], str], settings: Any
) -> None:
    got: dict[str, Any] = {}

    def reply(handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers["Content-Length"])
        got.update(path=handler.path, body=json.loads(handler.rfile.read(length)))
        got.update(headers=dict(handler.headers))
        say(200, b"thanks")(handler)

    url = serve(reply)
    answer = outbound.post(
        f"{url}/in?a=1", now=NOW, json={"n": 1}, headers={"Authorization": "Bearer t"}
    )

    assert (answer.status, answer.ok, answer.body) == (200, True, "thanks")
    assert (got["path"], got["body"]) == ("/in?a=1", {"n": 1})
    assert got["headers"]["User-Agent"] == f"millrace/{settings.VERSION}"
    assert got["headers"]["Authorization"] == "Bearer t"


def test_a_redirect_is_an_answer_and_is_not_followed(
    serve: Callable[[Reply], str],
) -> None:
    hits: list[str] = []

    def reply(handler: BaseHTTPRequestHandler) -> None:
        hits.append(handler.path)
        say(302, Location="/elsewhere")(handler)

    answer = outbound.post(f"{serve(reply)}/here", now=NOW)

    assert (answer.status, answer.ok, hits) == (302, False, ["/here"])


def test_of_an_endless_answer_64_kib_are_read_and_1_kib_is_kept(
    serve: Callable[[Reply], str],
) -> None:
    sent: list[int] = []
    ended = threading.Event()

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(100_000):
                handler.wfile.write(b"x" * 4096)
                sent.append(4096)
        except OSError:
            ended.set()  # the other side hung up

    answer = outbound.post(serve(reply), now=NOW)

    assert answer.body == "x" * 1024
    assert ended.wait(10)
    assert sum(sent) < 100_000 * 4096


def test_compression_is_not_asked_for_and_not_undone(
    serve: Callable[[Reply], str],
) -> None:
    asked: list[str] = []

    def reply(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.headers["Accept-Encoding"])
        bomb = gzip.compress(b"0" * 50_000_000)
        say(200, bomb, Content_Encoding="gzip")(handler)

    answer = outbound.post(serve(reply), now=NOW)

    assert asked == ["identity"]
    assert len(answer.body) <= 1024


@pytest.mark.parametrize("part", ["headers", "body"])
def test_a_server_that_drips_is_left_when_the_time_is_over(
    part: str, serve: Callable[[Reply], str]
) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        if part == "body":
            handler.wfile.write(b"no\r\nContent-Length: 1000\r\n\r\n")
        until = time.monotonic() + 20
        try:
            while time.monotonic() < until:
                handler.wfile.write(b"x")
                time.sleep(0.05)  # the server's pace, not the test's wait
        except OSError:
            pass

    url = serve(reply)
    began = time.monotonic()
    with pytest.raises(
        outbound.Unreachable, match=r"no complete answer from 127.0.0.1:\d+ within 1 s"
    ):
        outbound.post(url, now=NOW, total=timedelta(seconds=1))

    assert time.monotonic() - began < 5


def test_nobody_listening_is_said_with_host_and_port_alone() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(outbound.Unreachable) as caught:
        outbound.post(f"http://127.0.0.1:{port}/secret-path?token=hidden", now=NOW)

    assert str(caught.value) == f"no connection to 127.0.0.1:{port}: connection refused"


def test_a_server_that_speaks_no_http_is_said(serve: Callable[[Reply], str]) -> None:
    url = serve(lambda handler: handler.wfile.write(b"220 smtp ready\r\n"))

    with pytest.raises(outbound.Unreachable, match="gave no valid HTTP answer"):
        outbound.post(url, now=NOW)


@pytest.mark.parametrize(
    "url",
    ["", "ftp://example.org/x", "http://", "not a url", "http://[::1", "https://\x00/"],
)
def test_an_address_that_cannot_be_called_is_one_sentence(url: str) -> None:
    with pytest.raises(outbound.Unreachable) as caught:
        outbound.post(url, now=NOW)

    assert len(str(caught.value).splitlines()) == 1


def test_proxies_of_the_environment_are_not_used(
    serve: Callable[[Reply], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    assert outbound.post(serve(say(204)), now=NOW).status == 204


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("30", timedelta(seconds=30)),
        (" 30 ", timedelta(seconds=30)),
        ("0", timedelta()),
        ("-5", timedelta()),
        ("86401", timedelta(hours=24)),
        ("9" * 5000, timedelta(hours=24)),
        ("-" + "9" * 5000, timedelta()),
        ("Sun, 29 Nov 2026 12:00:45 GMT", timedelta(seconds=45)),
        ("Sun, 29 Nov 2026 11:00:00 GMT", timedelta()),
        ("Sun, 29 Nov 2099 11:00:00 GMT", timedelta(hours=24)),
        ("Sun, 29 Nov 2026 13:00:45 +0100", timedelta(seconds=45)),
        ("", None),
        ("soon", None),
        ("1.5", None),
        ("١٢", None),
        ("Sun, 99 Nov 2026 12:00:45 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date_and_clamped(
    value: str, expected: timedelta | None
) -> None:
    assert outbound.retry_after(value, now=NOW) == expected


def test_an_answer_says_how_long_to_wait(serve: Callable[[Reply], str]) -> None:
    answer = outbound.post(serve(say(429, b"slow down", Retry_After="30")), now=NOW)

    assert (answer.status, answer.retry_after) == (429, timedelta(seconds=30))
