"""Kinds of values that environment variables have, and how a text is read as one.

Each function raises ValueError with the end of a sentence: what would be right.
"""

import re
import zoneinfo
from collections.abc import Callable
from email.errors import MessageError
from email.headerregistry import Address
from email.utils import parseaddr
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import environ
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

DATABASE_EXAMPLE = (
    "postgresql://user:password@host:5432/name or sqlite:////path/of/file"
)
EMAIL_SCHEMES = ("smtp", "smtp+tls", "smtp+ssl")


def text(value: str) -> str:
    """Any text."""
    return value


def integer(value: str) -> int:
    """A whole number in ASCII digits."""
    if not value.isascii() or not value.removeprefix("-").isdigit():
        raise ValueError("must be a whole number")
    return int(value[:20])  # longer ones are out of all bounds anyway


def switch(value: str) -> bool:
    """On or off."""
    words = {"on": True, "true": True, "yes": True, "1": True}
    words |= {"off": False, "false": False, "no": False, "0": False}
    if value.lower() not in words:
        raise ValueError("must be on or off")
    return words[value.lower()]


def comma_list(value: str) -> list[str]:
    """Texts, separated by commas."""
    return [part.strip() for part in value.split(",") if part.strip()]


def zone(value: str) -> str:
    """The name of a time zone."""
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            "is no time zone; write a name such as Europe/Oslo or UTC"
        ) from None
    return value


def url(value: str) -> str:
    """An address on the web, without a slash at its end."""
    try:
        parts = urlsplit(value)
        whole = parts.scheme in ("http", "https") and parts.port != 0
        complete = whole and parts.hostname and not re.search(r"\s", value)
    except ValueError:
        complete = False
    if not complete:
        raise ValueError("must be an address such as https://millrace.example.com")
    return value.rstrip("/")


def folder(value: str) -> str:
    """An absolute path."""
    if not value.startswith("/"):
        raise ValueError("must be an absolute path, starting with /")
    return value


def host_names(value: str) -> list[str]:
    """Names of hosts, separated by commas, without scheme and port."""
    hosts = comma_list(value)
    for host in hosts:
        if not re.fullmatch(r"\*|\.?[\w.-]+|\[[\da-fA-F:.]+\]", host):
            raise ValueError(
                "must be host names such as millrace.example.com, separated by commas"
            )
    return hosts


def sender(value: str) -> str:
    """Who an e-mail is from."""
    try:
        address = Address(addr_spec=parseaddr(value, strict=True)[1])
    except (ValueError, MessageError):
        address = Address()
    if not (address.username and address.domain):
        raise ValueError("must be an e-mail address, or: Name <name@example.com>")
    return value


def fernet(value: str) -> list[str]:
    """Keys of Fernet, at least one."""
    keys = comma_list(value)
    for key in keys or [""]:
        try:
            Fernet(key)
        except (ValueError, TypeError):
            raise ValueError(
                "must be 32 bytes in URL-safe base64 (44 characters), several separated by commas; make one with: "
                'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
            ) from None
    return keys


def database(value: str) -> dict[str, Any]:
    """The address of a database, as Django's DATABASES wants it."""
    try:
        parts = urlsplit(value)
        _ = parts.port
        known = parts.scheme in ("postgres", "postgresql", "sqlite")
        found: dict[str, Any] = environ.Env.db_url_config(value) if known else {}
    except (ValueError, ImproperlyConfigured):
        found = {}
    name = found.get("NAME")
    if not name or name == ":memory:":
        raise ValueError(f"is no address of a database; write {DATABASE_EXAMPLE}")
    # The folder of a Unix socket stands in a URL with its slashes as %2F.
    found["HOST"] = unquote(found.get("HOST") or "")
    return found


def email(value: str) -> dict[str, Any]:
    """Where e-mails are handed over, as Django's MAILERS wants it."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in EMAIL_SCHEMES or not parts.hostname:
        raise ValueError(
            "must be smtp://, smtp+tls:// or smtp+ssl:// with user:password@host:port"
        )
    timeout = parse_qs(parts.query).get("timeout", ["10"])[0]
    usual = {"smtp": 25, "smtp+tls": 587, "smtp+ssl": 465}
    return {
        "BACKEND": "scheduler.handlers.notifications.channels.smtp.Backend",
        "OPTIONS": {
            "host": parts.hostname,
            "port": port or usual[parts.scheme],
            "username": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "use_tls": parts.scheme == "smtp+tls",
            "use_ssl": parts.scheme == "smtp+ssl",
            "timeout": integer(timeout),  # seconds
        },
    }


KINDS: dict[str, Callable[[str], object]] = {
    "text": text,
    "integer": integer,
    "switch": switch,
    "list": comma_list,
    "zone": zone,
    "url": url,
    "folder": folder,
    "hosts": host_names,
    "sender": sender,
    "fernet": fernet,
    "database": database,
    "email": email,
}
