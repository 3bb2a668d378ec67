"""outbound: the one HTTP client for whatever a handler tells the outside world.

Connect within 5 s, all of it within 20 s whatever the other side does, no redirects,
no proxies of the environment, at most 64 KiB of the answer read and 1 KiB kept.
Errors name the host and never the path, the query or a header: those hold secrets.
"""

import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpcore
import httpx
from django.conf import settings

CONNECT = timedelta(seconds=5)
TOTAL = timedelta(seconds=20)
READ_AT_MOST = 64 * 1024  # bytes
KEEP_AT_MOST = 1024  # bytes
WAIT_AT_MOST = timedelta(hours=24)


class Unreachable(Exception):
    """The other side gave no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the other side said."""

    status: int
    body: str  # its beginning
    retry_after: timedelta | None  # None: it did not ask for a pause

    @property
    def ok(self) -> bool:
        """Any 2xx."""
        return 200 <= self.status < 300


def post(
    url: str,
    *,
    now: datetime,
    json: object = None,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    total: timedelta = TOTAL,
) -> Answer:
    """Send one POST and read the answer, whatever its status. Raises Unreachable."""
    until = time.monotonic() + total.total_seconds()
    try:
        target = httpx.URL(url)
        with (
            httpx.Client(
                transport=_Transport(until), timeout=_timeout(total)
            ) as client,
            client.stream(
                "POST",
                target,
                json=json,
                content=content,
                headers={**_headers(), **(headers or {})},
            ) as response,
        ):
            body = _beginning(response.iter_raw(4096))
            asked = response.headers.get("retry-after", "")
            return Answer(
                status=response.status_code,
                body=body[:KEEP_AT_MOST].decode(errors="replace"),
                retry_after=retry_after(asked, now=now),
            )
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as problem:
        raise Unreachable(_told(url, problem, total=total)) from None


def retry_after(value: str, *, now: datetime) -> timedelta | None:
    """The pause that a Retry-After asks for, as seconds or as a date; at most a day, never negative.

    None for what is neither.
    """
    value = value.strip()
    if value.isascii() and value.removeprefix("-").isdecimal():
        # A number of many digits is far beyond the clamp, and slow to read.
        most = int(WAIT_AT_MOST.total_seconds())
        seconds = int(value) if len(value) < 10 else most
        seconds = 0 if value.startswith("-") else seconds
        wait = timedelta(seconds=seconds)
    else:
        try:
            date = parsedate_to_datetime(value)
            wait = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(wait, timedelta()), WAIT_AT_MOST)


def host(url: str) -> str:
    """Host and port of a URL: all of it that may be shown."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return "an address that is no URL"
    port = f":{parsed.port}" if parsed.port else ""
    return f"{parsed.host}{port}" if parsed.host else "an address without a host"


def _headers() -> dict[str, str]:
    # No compression: what is read is what was sent, and a small answer cannot
    # unpack into a large one.
    return {"User-Agent": f"millrace/{settings.VERSION}", "Accept-Encoding": "identity"}


def _timeout(total: timedelta) -> httpx.Timeout:
    connect = min(CONNECT, total).total_seconds()
    return httpx.Timeout(total.total_seconds(), connect=connect)


def _beginning(chunks: Iterable[bytes]) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) >= READ_AT_MOST:
            break
    return bytes(body)


def _told(url: str, problem: Exception, *, total: timedelta) -> str:
    where = host(url)
    seconds = f"{total.total_seconds():g} s"
    match problem:
        case httpx.ConnectTimeout():
            return f"no connection to {where} within {min(CONNECT, total).total_seconds():g} s"
        case httpx.TimeoutException():
            return f"no complete answer from {where} within {seconds}"
        case httpx.ConnectError():
            return f"no connection to {where}: {_reason(problem)}"
        case httpx.RemoteProtocolError():
            return f"{where} gave no valid HTTP answer"
        case httpx.UnsupportedProtocol() | httpx.InvalidURL():
            return (
                f"{where} cannot be called: the URL must begin with http:// or https://"
            )
        case httpx.HTTPError():
            return f"the connection to {where} broke: {_reason(problem)}"
    return f"{where} cannot be called: {type(problem).__name__}"


def _reason(problem: Exception) -> str:
    """ "[Errno 111] Connection refused" -> "connection refused"."""
    text = str(problem) or type(problem).__name__
    text = text.partition("] ")[2] if text.startswith("[Errno") else text
    return text[:1].lower() + text[1:]


@cache
def _trusted() -> ssl.SSLContext:
    """The system's certificates (SSL_CERT_FILE included); reading them takes 20 ms."""
    return ssl.create_default_context()


class _Transport(httpx.HTTPTransport):
    """A connection for one request that ends at a given moment.

    httpx counts its timeouts per read: a server that sends a byte every few seconds
    would hold the caller for ever.
    """

    def __init__(self, until: float) -> None:
        super().__init__(verify=_trusted(), trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_trusted(), network_backend=_Backend(until)
        )


class _Backend(httpcore.SyncBackend):
    """Opens connections whose reads and writes end at a given moment."""

    def __init__(self, until: float) -> None:
        self._until = until

    def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        return _Stream(super().connect_tcp(*args, **kwargs), until=self._until)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, *, until: float) -> None:
        self._stream = stream
        self._until = until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._left(timeout, httpcore.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _Stream(stream, until=self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _left(self, timeout: float | None, error: type[Exception]) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise error
        return left if timeout is None else min(timeout, left)
