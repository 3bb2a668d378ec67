"""names: what the apps above call the things that the ledger keeps by key.

The ledger imports no other app and still has to show "Notification Handler" beside
`notifications.deliver`. It finds who knows through settings.AUDIT_NAMES, a dotted
path of a module with these functions; without one, keys stand for themselves.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Protocol, cast

from django.conf import settings


class Names(Protocol):
    """What the module behind settings.AUDIT_NAMES offers."""

    def title(self, key: str) -> str:
        """The name that operators know; the key itself where nobody knows it any more."""

    def titles(self) -> dict[str, str]:
        """All keys of the timetable with their names, in its order."""

    def list_of(self, key: str) -> str:
        """The page on which the runs of a handler, or of a job type, stand: runs | job_logs."""

    def tenant_ids(self, slugs: Iterable[str]) -> dict[str, int]:
        """The ids of the tenants that exist; a removed one is missing."""

    def tenants(self, ids: frozenset[int] | None, *, limit: int) -> list[str]:
        """Slugs to suggest, of the tenants that the reader may see; None: of all."""


class _Keys:
    """Nobody knows names: every key stands for itself."""

    def title(self, key: str) -> str:
        return key

    def titles(self) -> dict[str, str]:
        return {}

    def list_of(self, key: str) -> str:
        return "runs"

    def tenant_ids(self, slugs: Iterable[str]) -> dict[str, int]:
        return {}

    def tenants(self, ids: frozenset[int] | None, *, limit: int) -> list[str]:
        return []


def names() -> Names:
    """The module that knows, imported on first use."""
    path: str = getattr(settings, "AUDIT_NAMES", "")
    return cast(Names, import_module(path)) if path else _Keys()
