"""Reply classes of RFC 5321, and what happens to connections."""

import smtplib
import socket
import ssl

import pytest

from scheduler.handlers.notifications.channels import smtp_replies
from scheduler.handlers.notifications.channels.border import (
    Broken,
    Deferred,
    Refused,
    Unreachable,
)

pytestmark = pytest.mark.once


def untrusted() -> ssl.SSLCertVerificationError:
    problem = ssl.SSLCertVerificationError()
    problem.verify_message = "self-signed certificate"
    return problem


@pytest.mark.parametrize(
    ("problem", "kind", "text"),
    [
        (
            smtplib.SMTPConnectError(421, b"too busy"),
            Unreachable,
            "mx:25 said 421 too busy",
        ),
        (
            smtplib.SMTPConnectError(-1, b"-2.0-OpenSSH_9"),
            Broken,
            "no mail server answers at mx:25",
        ),
        (
            smtplib.SMTPConnectError(200, b"news.example.com InterNetNews 2.7"),
            Broken,
            "no mail server answers at mx:25",
        ),
        (
            smtplib.SMTPHeloError(-1, b"token of the inside"),
            Broken,
            "no mail server answers at mx:25",
        ),
        (
            UnicodeEncodeError("ascii", "p\u00e4ss", 1, 2, "ordinal not in range"),
            Broken,
            "mx:25: host, user or password has characters that cannot be sent",
        ),
        (
            smtplib.SMTPConnectError(554, b"no service"),
            Broken,
            "mx:25 said 554 no service",
        ),
        (
            smtplib.SMTPAuthenticationError(535, b"no"),
            Broken,
            "mx:25 does not let this user in: 535 no",
        ),
        (
            smtplib.SMTPAuthenticationError(454, b"later"),
            Unreachable,
            "mx:25 does not let this user in: 454 later",
        ),
        (smtplib.SMTPNotSupportedError("no STARTTLS"), Broken, "mx:25: no STARTTLS"),
        (
            smtplib.SMTPServerDisconnected("x"),
            Unreachable,
            "mx:25 closed the connection",
        ),
        (ConnectionRefusedError(), Unreachable, "connection refused by mx:25"),
        (TimeoutError(), Unreachable, "no answer from mx:25 in time"),
        (
            socket.gaierror(-2, "Name or service not known"),
            Unreachable,
            "the name in mx:25 cannot be found: Name or service not known",
        ),
        (
            untrusted(),
            Broken,
            "the certificate of mx:25 is not trusted: self-signed certificate",
        ),
        (
            OSError(113, "No route to host"),
            Unreachable,
            "mx:25: [Errno 113] No route to host",
        ),
    ],
)
def test_at_opening_everything_is_about_the_channel(
    problem: Exception, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught, smtp_replies.read_at_opening("mx:25"):
        raise problem
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("problem", "kind", "text"),
    [
        (
            smtplib.SMTPRecipientsRefused({"a@x": (550, b"5.1.1 no such user")}),
            Refused,
            "550 5.1.1 no such user",
        ),
        (
            smtplib.SMTPRecipientsRefused({"a@x": (451, b"later")}),
            Deferred,
            "451 later",
        ),
        (smtplib.SMTPRecipientsRefused({"a@x": (421, b"bye")}), Unreachable, "421 bye"),
        (
            smtplib.SMTPSenderRefused(550, b"no", "me@x"),
            Broken,
            "mx:25 refused the sender me@x: 550 no",
        ),
        (smtplib.SMTPSenderRefused(451, b"later", "me@x"), Deferred, "451 later"),
        (smtplib.SMTPSenderRefused(552, b"too big", "me@x"), Refused, "552 too big"),
        (
            smtplib.SMTPDataError(554, b"spam\r\nX-Evil: 1"),
            Refused,
            "554 spam X-Evil: 1",
        ),
        (smtplib.SMTPDataError(452, b"full\xff"), Deferred, "452 full\ufffd"),
        (
            smtplib.SMTPDataError(-1, b"-2.0-OpenSSH_9"),
            Deferred,
            "no reply of a mail server",
        ),
        (
            smtplib.SMTPServerDisconnected("x"),
            Unreachable,
            "mx:25 closed the connection",
        ),
        (ConnectionResetError(104, "reset"), Unreachable, "mx:25: [Errno 104] reset"),
        (ValueError("Invalid address"), Refused, "Invalid address"),
    ],
)
def test_at_sending_a_reply_is_about_the_message_unless_it_speaks_of_the_sender(
    problem: Exception, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught, smtp_replies.read_at_sending("mx:25"):
        raise problem
    assert str(caught.value) == text
