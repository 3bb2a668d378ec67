"""Rows that tests of jobs need."""

from typing import Any

from audit import clock
from jobworker.models import Deployment


def deployment(ctx: Any = None, **values: Any) -> Deployment:
    """An active cluster, of the job's tenant where one is given."""
    now = clock.now()
    if ctx is not None:
        values = {"tenant_id": ctx.tenant_id, "tenant_slug": ctx.tenant, **values}
    elif "tenant" in values:
        values = {"tenant_slug": values["tenant"].slug, **values}
    defaults: dict[str, Any] = {
        "kind": "cluster",
        "name": "demo",
        "module": "offline",
        "status": Deployment.Status.ACTIVE,
        "created_at": now,
        "created_by": "operator",
        "changed_at": now,
    }
    return Deployment.objects.create(**{**defaults, **values})
