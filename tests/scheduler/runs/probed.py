"""probed: a handler that can say who has work: tenants with a module "work"."""

from datetime import datetime

from django.db.models import QuerySet

from workqueue.context import Context, Outcome
from workqueue.models import Tenant


def due(now: datetime) -> QuerySet:
    return Tenant.objects.filter(name__startswith="Busy").values_list("id", flat=True)


def run(ctx: Context) -> Outcome:
    return Outcome()
