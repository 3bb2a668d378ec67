"""smtp: Django's SMTP backend, with an end to each conversation.

smtplib counts its timeout per read: a server that sends a byte every few seconds would
hold the thread for ever. Here connecting ends within OPENING and a message up to its
final dot within TALK, whatever the other side does.
"""

import io
import smtplib
import socket
import time
from datetime import timedelta
from typing import Any

from django.core.mail.backends.smtp import EmailBackend

from scheduler.handlers.notifications.channels import border

OPENING = 60.0  # seconds: addresses, connection, greeting, TLS, login
TALK = 60.0  # seconds: a message up to its final dot
BYE = 10.0  # seconds
_RECORD = 16_384  # bytes of a TLS record: what one write sends, whole


class PerhapsTaken(smtplib.SMTPException):
    """The server had all of the message, and did not say what becomes of it."""


class Backend(EmailBackend):
    """Django's, with conversations that end."""

    connection: Any  # None: not open
    patience = border.PATIENCE  # for the reply after the final dot

    @property
    def connection_class(self) -> Any:
        """What `open` makes."""
        return _TlsConversation if self.use_ssl else _Conversation

    def send_messages(self, email_messages: Any) -> int:
        """Send over the connection that is open."""
        self.connection.patience = self.patience
        return super().send_messages(email_messages)


class _Conversation(smtplib.SMTP):
    """smtplib's, whose reads and writes end at a given moment."""

    patience: timedelta
    _until: float  # monotonic seconds
    _step: float  # seconds: each read or write
    _has_all = False  # the server has all of the message in hand

    def sendmail(self, *args: Any, **kwargs: Any) -> Any:
        """One message."""
        self._has_all = False
        self._within(TALK)
        return super().sendmail(*args, **kwargs)

    def data(self, msg: Any) -> tuple[int, bytes]:
        """The content, and what is said of it. Raises PerhapsTaken where nothing is said."""
        try:
            code, text = super().data(msg)
        except OSError as problem:
            if self._has_all:
                raise PerhapsTaken from problem
            raise
        if code < 0:
            raise PerhapsTaken
        return code, text

    def quit(self) -> tuple[int, bytes]:
        """Bye."""
        self._within(BYE)
        return super().quit()

    def send(self, s: Any) -> None:
        """Write it. Commands are text; only a message's content comes as bytes."""
        content = isinstance(s, bytes)
        data = s if content else s.encode(self.command_encoding)
        for start in range(0, len(data), _RECORD):
            if self.sock:
                self.sock.settimeout(self.left())
            super().send(data[start : start + _RECORD])
        if content:
            # Its final dot is out. RFC 5321 asks for ten minutes of patience here:
            # a server that scans what it took must not get the message twice.
            self._has_all = True
            self._within(self.patience.total_seconds())
            self._step = self.patience.total_seconds()

    def getreply(self) -> tuple[int, bytes]:
        """Read by the clock instead of by the byte."""
        if self.file is None:
            self.file = io.BufferedReader(_Replies(self))
        return super().getreply()

    def left(self) -> float:
        """Seconds that the next read or write may take. Raises TimeoutError: none."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self._step)

    def _within(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        # A mailer may be set up without a timeout; smtplib then has an object here.
        given = self.timeout
        self._step = given if isinstance(given, int | float) else seconds

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect to the first address that answers; smtplib would wait for each in full."""
        self._within(OPENING)
        problem = OSError("the name has no address")
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                return socket.create_connection((str(address[0]), port), self.left())
            except OSError as reason:
                problem = reason
        raise problem


class _TlsConversation(smtplib.SMTP_SSL, _Conversation):
    """The same within TLS from the first byte."""


class _Replies(io.RawIOBase):
    """What the server says, read while there is time."""

    def __init__(self, conversation: _Conversation) -> None:
        self._conversation = conversation

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        sock = self._conversation.sock
        assert sock is not None  # noqa: S101 - it is closed after its reader
        sock.settimeout(self._conversation.left())
        return sock.recv_into(buffer)
