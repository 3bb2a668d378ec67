"""smtp_replies: what smtplib raises -> the words of the border, by RFC 5321's reply classes."""

import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from scheduler.handlers.notifications.channels import smtp
from scheduler.handlers.notifications.channels.border import (
    Broken,
    Deferred,
    PerhapsTaken,
    Refused,
    Unreachable,
)
from scheduler.handlers.notifications.channels.one_line import one_line

CLOSING = 421  # the server ends the conversation, whatever it was about
TOO_LARGE = 552  # at MAIL FROM it speaks of the message's size, not of the sender
LONGEST_REPLY = 500  # characters


@contextmanager
def read_at_opening(where: str) -> Iterator[None]:
    """Around connect, greeting, TLS and login: all of it is about the channel."""
    try:
        yield
    except smtplib.SMTPResponseException as problem:
        if not 400 <= problem.smtp_code < 600:
            # Whoever may test a channel must not read what any port of the network says.
            raise Broken(f"no mail server answers at {where}") from problem
        said = _said(problem.smtp_code, problem.smtp_error)
        if isinstance(problem, smtplib.SMTPAuthenticationError):
            said = f"{where} does not let this user in: {said}"
        else:
            said = f"{where} said {said}"
        raise _by_class(
            problem.smtp_code, said, now=Unreachable, ever=Broken
        ) from problem
    except smtplib.SMTPNotSupportedError as problem:
        raise Broken(f"{where}: {problem}") from problem
    except OSError as problem:  # SMTPException is one too
        raise _of_connection(problem, where) from problem
    except ValueError:
        # Its text would tell a letter of the password and where it stands.
        raise Broken(
            f"{where}: host, user or password has characters that cannot be sent"
        ) from None


@contextmanager
def read_at_sending(where: str) -> Iterator[None]:
    """Around one message."""
    try:
        yield
    except smtp.PerhapsTaken as problem:
        raise PerhapsTaken(
            f"{_of_silence(problem.__cause__, where)} after it had the whole message:"
            " it was perhaps delivered"
        ) from problem
    except smtplib.SMTPRecipientsRefused as problem:
        code, text = next(iter(problem.recipients.values()))
        raise _of_message(code, text) from problem
    except smtplib.SMTPSenderRefused as problem:
        if problem.smtp_code in {CLOSING, TOO_LARGE} or problem.smtp_code < 500:
            raise _of_message(problem.smtp_code, problem.smtp_error) from problem
        said = _said(problem.smtp_code, problem.smtp_error)
        raise Broken(
            f"{where} refused the sender {problem.sender}: {said}"
        ) from problem
    except smtplib.SMTPResponseException as problem:
        raise _of_message(problem.smtp_code, problem.smtp_error) from problem
    except smtplib.SMTPNotSupportedError as problem:
        raise Refused(f"{where}: {problem}") from problem
    except OSError as problem:
        raise _of_connection(problem, where) from problem
    except ValueError as problem:  # a header that cannot be made
        raise Refused(one_line(str(problem), limit=LONGEST_REPLY)) from problem


def _of_message(code: int, text: bytes | str) -> Exception:
    if code == CLOSING:
        return Unreachable(_said(code, text))
    return _by_class(code, _said(code, text), now=Deferred, ever=Refused)


def _by_class(
    code: int, said: str, *, now: type[Exception], ever: type[Exception]
) -> Exception:
    return ever(said) if 500 <= code < 600 else now(said)


def _of_silence(problem: BaseException | None, where: str) -> str:
    """What came instead of a reply."""
    if isinstance(problem, OSError):
        return str(_of_connection(problem, where))
    return f"no reply of a mail server from {where}"


def _of_connection(problem: OSError, where: str) -> Exception:
    """Nobody there, or gone. Only a certificate that is not trusted does not end by itself."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return Broken(
            f"the certificate of {where} is not trusted: {problem.verify_message}"
        )
    if isinstance(problem, ConnectionRefusedError):
        return Unreachable(f"connection refused by {where}")
    # smtplib says "disconnected" for both; what it saw is behind it.
    if isinstance(problem, TimeoutError) or isinstance(
        problem.__context__, TimeoutError
    ):
        return Unreachable(f"no answer from {where} in time")
    if isinstance(problem, socket.gaierror):
        return Unreachable(f"the name in {where} cannot be found: {problem.strerror}")
    if isinstance(problem, smtplib.SMTPServerDisconnected):
        return Unreachable(f"{where} closed the connection")
    return Unreachable(f"{where}: {one_line(str(problem), limit=LONGEST_REPLY)}")


def _said(code: int, text: bytes | str) -> str:
    """'550 5.1.1 no such user', whatever bytes came; nothing of what is no reply."""
    if code < 0:
        return "no reply of a mail server"
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return f"{code} {one_line(words, limit=LONGEST_REPLY)}"
