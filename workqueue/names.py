"""names: what the ledger's screens call handlers and tenants.

Found through settings.AUDIT_NAMES; `audit.names` says what is asked of it.
"""

from collections.abc import Iterable

from workqueue import registry
from workqueue.models import Tenant


def title(key: str) -> str:
    """The name that operators know; the key itself where no row has it any more."""
    return registry.title(key)


def titles() -> dict[str, str]:
    """All keys of the timetable with their titles, in its order."""
    return {key: row.title for key, row in registry.rows().items()}


def list_of(key: str) -> str:
    """The page on which the runs of a handler, or of a job type, stand."""
    return "job_logs" if key in registry.job_types() else "runs"


def tenant_ids(slugs: Iterable[str]) -> dict[str, int]:
    """The ids of the tenants that exist."""
    return dict(Tenant.objects.filter(slug__in=list(slugs)).values_list("slug", "id"))


def tenants(ids: frozenset[int] | None, *, limit: int) -> list[str]:
    """Slugs to suggest, of the tenants that the reader may see."""
    seen = Tenant.objects.all() if ids is None else Tenant.objects.filter(id__in=ids)
    return list(seen.order_by("slug").values_list("slug", flat=True)[:limit])
