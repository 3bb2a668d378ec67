"""border: what the domain says to a channel's module, and what it hears back.

A module of a kind has `opened(endpoint)`, a context manager that yields
`deliver(message) -> provider id`, and `ConfigForm`, the fields of its configuration.
Both `opened` and `deliver` raise only what stands below; anything else counts as a
fault of that one message. They are called outside any transaction.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import Any, Protocol, cast

from django import forms

# Kind -> module, imported on first use. A kind that is not here is neither offered
# nor claimed: its rows wait until a release brings the module.
MODULES = {
    "email": "scheduler.handlers.notifications.channels.email",
    "web": "scheduler.handlers.notifications.channels.web",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A channel as its module sees it."""

    kind: str
    name: str
    tenant_id: int
    tenant: str  # slug
    config: Mapping[str, Any]
    secret: str = field(repr=False)  # "": none
    fault: str = ""  # why it cannot be used as it stands; "": it can

    @property
    def label(self) -> str:
        """What transcripts call it: email channel "ops"."""
        return f'{self.kind.partition("_")[0]} channel "{self.name}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One notification, rendered."""

    notification_id: int
    key: str  # the same on each try: the receiver can drop a repeat by it
    recipient: str
    subject: str
    text: str
    html: str  # "": only text
    url: str  # "": none
    reply_to: str  # "": the channel's


type Deliver = Callable[[Message], str]  # returns the provider's id for it


class Module(Protocol):
    """What a module of a kind offers."""

    ConfigForm: type[forms.Form]

    def opened(self, endpoint: Endpoint) -> AbstractContextManager[Deliver]:
        """Get ready to send a batch. Raises Unreachable, Broken or RateLimited."""


class Refused(Exception):
    """The other side will never take this message; others may go."""


class Deferred(Exception):
    """The other side did not take this message now; others may go."""


class Unreachable(Exception):
    """Nobody answers, or the connection was lost."""


class Broken(Exception):
    """Nothing goes through this channel until its configuration changes."""


class RateLimited(Exception):
    """The other side asks for a pause."""

    def __init__(self, *, pause: timedelta) -> None:
        """`pause`: as the other side said it; the caller bounds it."""
        super().__init__(f"rate limited for {pause.total_seconds():.0f} s")
        self.pause = pause


def opened(endpoint: Endpoint) -> AbstractContextManager[Deliver]:
    """The endpoint's module, ready to send. Raises Unreachable, Broken or RateLimited."""
    if endpoint.fault:
        raise Broken(endpoint.fault)
    return module(endpoint.kind).opened(endpoint)


def module(kind: str) -> Module:
    """The module of a kind that stands in MODULES."""
    return cast(Module, import_module(MODULES[kind]))
