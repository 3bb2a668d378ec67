"""depth: how many items wait, execute and are held, counted as far as a page can wait for."""

from django.db.models import IntegerField, QuerySet, Subquery

from workqueue import sql
from workqueue.models import Tenant, WorkItem

MOST = 10_000  # items of a kind; one more stands for any number


class _Counted(Subquery):
    """How many rows a sliced query has, inside another statement."""

    template = sql.COUNT_OF
    empty_result_set_value = 0  # for a reader without any tenant
    output_field = IntegerField()


def by_status(items: QuerySet[WorkItem]) -> dict[str, int]:
    """MOST + 1 stands for more. One statement, on the platform's row: there is always one."""
    counts = [
        _Counted(items.filter(status=status).order_by().values("pk")[: MOST + 1])
        for status in WorkItem.Status.values
    ]
    platform = Tenant.objects.filter(is_platform=True).order_by()
    found = platform.values_list(*counts).first()
    return dict(zip(WorkItem.Status.values, found or (0, 0, 0), strict=True))


def shown(count: int) -> str:
    """37, 10,000+."""
    return f"{MOST:,}+" if count > MOST else f"{count:,}"
