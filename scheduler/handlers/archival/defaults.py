"""defaults: the policies that hold for every tenant until somebody says otherwise."""

from scheduler.handlers.archival.archivable import types
from scheduler.handlers.archival.models import ArchivalPolicy


def make_default_policies() -> str:
    """Make the missing defaults; those that were changed or disabled stay. Idempotent.
    Returns "" when there was nothing to make.

    A step of the bootstrap: once per term. A default holds for every tenant without
    a policy of its own, so new tenants need no step.
    """
    before = ArchivalPolicy.objects.defaults().count()
    ArchivalPolicy.objects.bulk_create(
        [
            ArchivalPolicy(tenant=None, record_type=rows.name, keep_days=rows.keep_days)
            for rows in types().values()
        ],
        ignore_conflicts=True,
    )
    made = ArchivalPolicy.objects.defaults().count() - before
    return f"{made} default archival policies made" if made else ""
