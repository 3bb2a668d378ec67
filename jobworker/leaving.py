"""leaving: what keeps a tenant from being removed: its jobs, and what they made outside."""

from jobworker.models import Deployment, Job
from workqueue.models import Tenant

MOST = 3  # that are named


def keeps(tenant: Tenant) -> str:
    """Why the tenant cannot be removed yet; "": it can."""
    gone = Deployment.Status.DESTROYED
    there = Deployment.objects.filter(tenant_id=tenant.pk).exclude(status=gone)
    jobs = Job.objects.unfinished().filter(tenant_id=tenant.pk).count()
    found = []
    if names := [str(each) for each in there[: MOST + 1]]:
        shown = ", ".join(names[:MOST]) + (" and others" if len(names) > MOST else "")
        found.append(f"It still has {shown}: destroy them first.")
    if jobs:
        found.append(
            f"{jobs} of its jobs {'has' if jobs == 1 else 'have'} not ended: cancel them first, or wait."
        )
    return " ".join(found)
