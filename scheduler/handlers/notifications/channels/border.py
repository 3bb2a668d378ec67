"""border: what the domain says to a channel's module, and what it hears back.

A module of a kind has `opened(endpoint)`, a context manager that yields
`deliver(message) -> provider id`, and `ConfigForm`, the fields of its configuration.
Both `opened` and `deliver` raise only what stands below; anything else counts as a
fault of that one message. They are called outside any transaction.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import Any, Protocol, cast

from django import forms
from django.core.validators import RegexValidator

from audit.text import as_text

logger = logging.getLogger(__name__)

# Kind -> module, imported on first use. A kind that is not here is neither offered
# nor claimed: its rows wait until a release brings the module.
MODULES = {
    "email": "scheduler.handlers.notifications.channels.email",
    "web": "scheduler.handlers.notifications.channels.web",
}


# For what the other side says of a message that it has in full. Whoever gives up earlier
# sends again what was perhaps taken; meanwhile a thread is held.
PATIENCE = timedelta(minutes=4)


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
    patience: timedelta = PATIENCE

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


# Of a user or a secret, in forms: what the ways out can carry.
CREDENTIAL = RegexValidator(
    r"^[ -~]*\Z",
    "Only letters without accents, digits and the signs of ASCII can be sent.",
)

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


class PerhapsTaken(Exception):
    """The other side had the whole message when the connection was lost."""


class Broken(Exception):
    """Nothing goes through this channel until its configuration changes."""


class RateLimited(Exception):
    """The other side asks for a pause."""

    def __init__(self, *, pause: timedelta) -> None:
        """`pause`: as the other side said it; the caller bounds it."""
        super().__init__(f"rate limited for {pause.total_seconds():.0f} s")
        self.pause = pause


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[Deliver]:
    """The endpoint's module, ready to send. Raises Unreachable, Broken or RateLimited.

    Whatever else the module raises on opening is a fault of this channel: the tenant's
    others are still served.
    """
    if endpoint.fault:
        raise Broken(endpoint.fault)
    with ExitStack() as stack:
        try:
            deliver = stack.enter_context(module(endpoint.kind).opened(endpoint))
        except (Unreachable, Broken, RateLimited):
            raise
        except Exception as problem:
            logger.exception("%s cannot be opened", endpoint.label)
            raise Broken(
                f"it cannot be opened: {type(problem).__name__}: {as_text(problem)}"
            ) from problem
        yield deliver


def module(kind: str) -> Module:
    """The module of a kind that stands in MODULES."""
    return cast(Module, import_module(MODULES[kind]))
