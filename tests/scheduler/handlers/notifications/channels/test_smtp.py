"""Conversations with mail servers that are slow, silent or gone, each over every kind of wire."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from scheduler.handlers.notifications.channels import border, email, smtp

pytestmark = pytest.mark.once

MESSAGE = border.Message(
    notification_id=1,
    key="n-1",
    recipient="anna@example.com",
    subject="Hello",
    text="How are you?",
    html="",
    url="",
    reply_to="",
)


@dataclass
class Server:
    """A mail server that a test can make behave badly at one step."""

    security: str
    context: ssl.SSLContext
    port: int = 0
    says: dict[bytes, Callable[[socket.socket], None]] = field(default_factory=dict)
    taken: list[bytes] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def endpoint(self, **values: object) -> border.Endpoint:
        config = {
            "host": "127.0.0.1",
            "port": self.port,
            "security": self.security,
            "from_address": "millrace@example.com",
        }
        made = {"kind": "email", "name": "ops", "tenant_id": 1, "tenant": "acme"}
        return border.Endpoint(**{**made, "config": config, "secret": "", **values})  # type: ignore[arg-type]

    def talk(self, wire: socket.socket) -> None:
        if self.security == "tls":
            with self._secured(wire) as wire:
                self._converse(wire)
        else:
            self._converse(wire)

    def _converse(self, wire: socket.socket) -> None:
        self._answer(wire, b"HELLO", b"220 mail.example.com\r\n")
        self._commands(wire)

    def _secured(self, wire: socket.socket) -> ssl.SSLSocket:
        return self.context.wrap_socket(wire, server_side=True)

    def _commands(self, wire: socket.socket) -> None:
        while command := _line(wire):
            verb = command[:4].upper()
            if verb == b"STAR":
                wire.sendall(b"220 go on\r\n")
                with self._secured(wire) as secured:
                    self._commands(secured)
            elif verb == b"EHLO":
                wire.sendall(b"250-mail.example.com\r\n250 STARTTLS\r\n")
            elif verb == b"DATA":
                wire.sendall(b"354 go on\r\n")
                self.taken.append(_content(wire))
                self._answer(wire, b".", b"250 taken\r\n")
            else:
                self._answer(wire, verb, b"250 OK\r\n")

    def _answer(self, wire: socket.socket, verb: bytes, usual: bytes) -> None:
        self.says.get(verb, lambda wire: wire.sendall(usual))(wire)


def _line(wire: socket.socket) -> bytes:
    """One command; empty at the end."""
    read = b""
    while not read.endswith(b"\n") and (byte := wire.recv(1)):
        read += byte
    return read


def _content(wire: socket.socket) -> bytes:
    read = b""
    while not read.endswith(b"\r\n.\r\n") and (line := _line(wire)):
        read += line
    return read


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Takes one connection after the other until the test ends."""

    def accept() -> None:
        while True:
            try:
                wire, _ = listening.accept()
            except OSError:
                return
            with wire, suppress(OSError):  # the other side has gone
                server.talk(wire)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.port = listening.getsockname()[1]
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server's, with a certificate of its own making."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path: Path = tmp_path_factory.mktemp("tls") / "mail.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path)
    return made


@pytest.fixture(params=["", "starttls", "tls"])
def server(
    request: pytest.FixtureRequest,
    context: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Server]:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    monkeypatch.setattr("ssl.create_default_context", lambda: trusting)
    monkeypatch.setattr(email, "TIMEOUT", 0.3)
    monkeypatch.setattr(smtp, "OPENING", 0.8)
    monkeypatch.setattr(smtp, "TALK", 0.8)
    with serving(Server(security=request.param, context=context)) as made:
        yield made


def send(server: Server, patience: timedelta = timedelta(seconds=5)) -> None:
    with email.opened(server.endpoint(patience=patience)) as deliver:
        deliver(MESSAGE)


def test_a_server_that_reads_what_it_took_for_longer_than_a_step_is_waited_for(
    server: Server,
) -> None:
    def scan(wire: socket.socket) -> None:
        server.ended.wait(0.7)  # twice the timeout of a step
        wire.sendall(b"250 taken\r\n")

    server.says[b"."] = scan
    send(server)
    assert len(server.taken) == 1


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-OpenSSH_9\r\n"])
def test_a_connection_lost_after_the_final_dot_has_perhaps_taken_the_message(
    server: Server, reply: bytes
) -> None:
    def go(wire: socket.socket) -> None:
        wire.sendall(reply)
        wire.shutdown(socket.SHUT_RDWR)

    server.says[b"."] = go
    with pytest.raises(border.PerhapsTaken, match=r"it was perhaps delivered$") as said:
        send(server)
    assert "OpenSSH" not in str(said.value)
    assert len(server.taken) == 1


def test_silence_after_the_final_dot_has_perhaps_taken_the_message(
    server: Server,
) -> None:
    server.says[b"."] = lambda _: server.ended.wait(10) and None
    with pytest.raises(border.PerhapsTaken, match=r"^no answer from .* in time after"):
        send(server, patience=timedelta(seconds=1))


@pytest.mark.parametrize("verb", [b"MAIL", b"RCPT"])
def test_a_connection_lost_before_the_content_has_taken_nothing(
    server: Server, verb: bytes
) -> None:
    server.says[verb] = lambda wire: wire.shutdown(socket.SHUT_RDWR)
    with pytest.raises(border.Unreachable):
        send(server)


@pytest.mark.parametrize("verb", [b"HELLO", b"MAIL"])
def test_a_silent_server_is_left_also_by_a_mailer_without_a_timeout(
    server: Server, monkeypatch: pytest.MonkeyPatch, verb: bytes
) -> None:
    monkeypatch.setattr(email, "TIMEOUT", None)
    server.says[verb] = lambda _: server.ended.wait(10) and None
    with pytest.raises(border.Unreachable, match="in time"):
        send(server)


@pytest.mark.parametrize("verb", [b"HELLO", b"MAIL", b"RCPT", b"."])
def test_a_server_that_drips_its_replies_holds_nobody(
    server: Server, verb: bytes
) -> None:
    def drip(wire: socket.socket) -> None:
        for _ in range(100):  # ten seconds; each is far within the timeout of a step
            if server.ended.wait(0.1):
                break
            wire.sendall(b"2")

    server.says[verb] = drip
    began = time.monotonic()
    with pytest.raises((border.Unreachable, border.PerhapsTaken)):
        send(server, patience=timedelta(seconds=0.5))
    assert time.monotonic() - began < 5
