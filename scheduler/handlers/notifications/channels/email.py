"""email: SMTP to one recipient a message, one connection a batch.

Replies by RFC 5321: 4xx is for now, 5xx for ever. What is said about the sender or the
password holds for the whole channel, what is said about recipient or content for one
message. A channel without a host uses the installation's own (MAILERS).
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import (
    EmailMultiAlternatives,
    InvalidMailer,
    mailers,
)
from django.core.mail.backends.base import BaseEmailBackend
from django.core.validators import validate_email
from django.utils.html import linebreaks

from scheduler.handlers.notifications.channels import smtp, smtp_replies
from scheduler.handlers.notifications.channels.border import (
    CREDENTIAL,
    Broken,
    Deferred,
    Deliver,
    Endpoint,
    Message,
    Refused,
)
from scheduler.handlers.notifications.channels.one_line import one_line
from scheduler.handlers.notifications.channels.safe_url import safe_url
from scheduler.handlers.notifications.render import template

TIMEOUT = 10  # seconds, for each step of the conversation
LONGEST_ADDRESS = 254  # characters, RFC 5321
LONGEST_SUBJECT = 250  # characters


def _host_is_sound(text: str) -> None:
    try:
        text.encode("idna")
    except UnicodeError:
        raise ValidationError(
            "This is no host name: give one like mail.example.com."
        ) from None


class ConfigForm(forms.Form):
    """Where and as whom; everything may be empty: then the installation's own."""

    host = forms.CharField(
        required=False,
        max_length=253,
        validators=[_host_is_sound],
        help_text="Empty: the installation's mail server.",
    )
    port = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=65_535,
        help_text="Empty: 25, 587 with STARTTLS, 465 with TLS.",
    )
    security = forms.ChoiceField(
        required=False,
        choices=[("", "None"), ("starttls", "STARTTLS"), ("tls", "TLS")],
    )
    user = forms.CharField(
        required=False,
        max_length=255,
        validators=[CREDENTIAL],
        help_text="Empty: no authentication.",
    )
    from_address = forms.EmailField(
        required=False,
        max_length=LONGEST_ADDRESS,
        help_text="Empty: the installation's.",
    )
    from_name = forms.CharField(required=False, max_length=100)
    reply_to = forms.EmailField(required=False, max_length=LONGEST_ADDRESS)


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[Deliver]:
    """Connect, greet, secure, log in. Raises Unreachable or Broken."""
    sender = _sender(endpoint)
    connection = _connection(endpoint)
    if isinstance(connection, smtp.Backend):
        connection.patience = endpoint.patience
    try:
        with smtp_replies.read_at_opening(_where(connection)):
            connection.open()
        yield partial(_deliver, endpoint=endpoint, connection=connection, sender=sender)
    finally:
        # A refused login leaves its socket behind, so half open ones are closed too.
        # Whatever this raises: everything has been sent by now, or said to be lost.
        with suppress(Exception):
            connection.close()


def _connection(endpoint: Endpoint) -> BaseEmailBackend:
    config = endpoint.config
    if not (host := config.get("host")):
        try:
            return mailers.default
        except InvalidMailer as problem:
            raise Broken(f"the installation's mail server: {problem}") from problem
    security = config.get("security")
    try:
        return smtp.Backend(
            alias=f"channel {endpoint.name}",  # without one Django reads its old settings
            host=str(host),
            port=int(config["port"]) if config.get("port") else None,
            username=str(config.get("user") or ""),
            password=endpoint.secret,
            use_tls=security == "starttls",
            use_ssl=security == "tls",
            timeout=TIMEOUT,
        )
    except (InvalidMailer, TypeError, ValueError) as problem:
        raise Broken(f"its configuration cannot be used: {problem}") from problem


def _where(connection: BaseEmailBackend) -> str:
    """What errors call the other side: host:port, or the backend where it has none."""
    host, port = getattr(connection, "host", None), getattr(connection, "port", None)
    return f"{host}:{port}" if host else type(connection).__module__


def _sender(endpoint: Endpoint) -> str:
    """From: the name made one line, the address checked. Raises Broken."""
    address = str(endpoint.config.get("from_address") or settings.DEFAULT_FROM_EMAIL)
    if endpoint.config.get("from_address") and not _is_address(address):
        raise Broken(
            f"its sender “{one_line(address, limit=80)}” is not an e-mail address"
        )
    name = one_line(str(endpoint.config.get("from_name") or ""), limit=100)
    if not name:
        return address
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" <{address}>'


def _deliver(
    message: Message, *, endpoint: Endpoint, connection: BaseEmailBackend, sender: str
) -> str:
    mail = _mail(message, endpoint=endpoint, sender=sender)
    with smtp_replies.read_at_sending(_where(connection)):
        if not connection.send_messages([mail]):
            raise Deferred("the mail server took nothing and said nothing")
    return str(mail.extra_headers["Message-ID"])


def _mail(
    message: Message, *, endpoint: Endpoint, sender: str
) -> EmailMultiAlternatives:
    """Raises Refused where it cannot be made without risk."""
    words: dict[str, Any] = {
        "subject": one_line(message.subject, limit=LONGEST_SUBJECT),
        "text": _printable(message.text),
        "html": _printable(message.html)
        or linebreaks(_printable(message.text), autoescape=True),
        "url": _absolute(message.url),
        "tenant": endpoint.tenant,
        "channel": endpoint.name,
    }
    mail = EmailMultiAlternatives(
        subject=words["subject"],
        body=template("notifications/email/message.txt", words),
        from_email=sender,
        to=[_one_address(message.recipient, what="recipient")],
        reply_to=_reply_to(message, endpoint),
        headers={"Message-ID": f"<{message.key}@{_host()}>"},
    )
    mail.attach_alternative(
        template("notifications/email/message.html", words), "text/html"
    )
    return mail


def _reply_to(message: Message, endpoint: Endpoint) -> list[str]:
    found = message.reply_to or str(endpoint.config.get("reply_to") or "")
    return [_one_address(found, what="reply-to")] if found else []


def _one_address(text: str, *, what: str) -> str:
    """The address, if it is exactly one and nothing else. Raises Refused."""
    if not _is_address(text):
        raise Refused(f"{what} “{one_line(text, limit=80)}” is not an e-mail address")
    return text


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    # Headers and the SMTP command must be able to carry it as it stands.
    return (
        len(text) <= LONGEST_ADDRESS
        and text.isprintable()
        and not set(text) & set(' ,;<>"()')
    )


def _printable(text: str) -> str:
    """Without NUL and lone surrogates, which no encoding of a mail carries."""
    return text.replace("\x00", "\u2400").encode("utf-8", "replace").decode()


def _absolute(url: str) -> str:
    """A link for a reader who is not on the site; "" where it is none or leads nowhere."""
    safe = safe_url(url)
    if not safe.startswith("/"):
        return safe
    base = str(settings.BASE_URL).rstrip("/")
    return f"{base}{safe}" if base else ""


def _host() -> str:
    """The right half of a Message-ID: of the installation, not of the process's machine."""
    return urlsplit(str(settings.BASE_URL)).hostname or "localhost"
