"""paired: a handler whose scope is a query of (tenant id, key) pairs: tenants and their users."""

from datetime import datetime

from django.db.models import QuerySet

from workqueue.context import Context, Outcome
from workqueue.models import Membership


def pairs(now: datetime) -> QuerySet:
    return Membership.objects.values_list("tenant_id", "user__username")


def run(ctx: Context) -> Outcome:
    return Outcome()
