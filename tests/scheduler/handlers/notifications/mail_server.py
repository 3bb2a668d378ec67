"""A real SMTP server for tests: answers by recipient and keeps what it took."""

import asyncio
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult


@dataclass
class MailServer:
    """What it answers, and what it took."""

    host: str = "127.0.0.1"
    port: int = 0
    replies: dict[str, str] = field(default_factory=dict)  # recipient -> reply to RCPT
    senders: dict[str, str] = field(default_factory=dict)  # sender -> reply to MAIL
    data: dict[str, str] = field(default_factory=dict)  # recipient -> reply to DATA
    password: str = ""  # "": no authentication asked
    taken: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    after: Callable[[str], None] = lambda _: (
        None
    )  # called when one was taken, before the reply
    hangs_up: bool = False  # once it has taken a message, without a word
    most: int = 1_000  # messages of a connection; then 421
    connections: int = 0
    tried: list[str] = field(default_factory=list)  # recipients, refused ones too

    @property
    def recipients(self) -> list[str]:
        """Of what was taken, in order."""
        return [address for addresses, _ in self.taken for address in addresses]

    async def handle_EHLO(  # noqa: N802
        self,
        server: Any,
        session: Any,
        envelope: Any,
        hostname: str,
        responses: list[str],
    ) -> list[str]:
        session.host_name = hostname
        return responses

    async def handle_MAIL(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if reply := self.senders.get(address):
            return reply
        session.messages = getattr(session, "messages", 0) + 1
        if session.messages > self.most:
            return "421 4.7.0 too many messages"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        self.tried.append(address)
        reply = self.replies.get(address, "250 OK")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if reply := self.data.get(envelope.rcpt_tos[0]):
            return reply
        mail = cast(
            EmailMessage, message_from_bytes(envelope.content, policy=policy.default)
        )
        self.taken.append((envelope.rcpt_tos, mail))
        self.after(envelope.rcpt_tos[0])
        if self.hangs_up:
            server.transport.abort()
        return "250 OK"

    def authenticate(
        self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any
    ) -> AuthResult:
        return AuthResult(
            success=data.password.decode() == self.password, handled=False
        )


class _Listener:
    """An event loop in a thread, with the server in it; every connection is closed at the end."""

    def __init__(self, server: MailServer) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = server
        self.protocols: list[SMTP] = []
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def listen(self) -> int:
        """The port."""
        coroutine = self.loop.create_server(self._protocol, self.server.host, 0)
        self.listening = asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(
            10
        )
        return int(self.listening.sockets[0].getsockname()[1])

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    def _protocol(self) -> SMTP:
        asks = {
            "authenticator": self.server.authenticate,
            "auth_required": True,
            "auth_require_tls": False,
        }
        more: dict[str, Any] = asks if self.server.password else {}
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a password without TLS: on loopback, in a test
            made = SMTP(
                self.server, hostname="mail.example.com", loop=self.loop, **more
            )
        self.protocols.append(made)
        self.server.connections += 1
        return made

    async def _close(self) -> None:
        self.listening.close()
        for protocol in self.protocols:
            if protocol.transport is not None:
                protocol.transport.close()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def running(server: MailServer) -> Iterator[MailServer]:
    """The server, listening on a free port of its own."""
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    listener = _Listener(server)
    server.port = listener.listen()
    try:
        yield server
    finally:
        listener.stop()
