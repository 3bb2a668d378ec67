"""depth: how many items wait, execute and are held, counted as far as a page can wait for."""

from collections.abc import Mapping
from typing import Any

from django.db.models import IntegerField, QuerySet, Subquery

from workqueue import sql
from workqueue.models import Tenant, WorkItem

MOST = 10_000  # items of a kind; one more stands for any number


class _Counted(Subquery):
    """How many rows a sliced query has, inside another statement."""

    template = sql.COUNT_OF
    empty_result_set_value = 0  # for a reader without any tenant
    output_field = IntegerField()


def counted(rows: QuerySet[Any]) -> Subquery:
    """How many rows; MOST + 1 stands for more. A part of a statement."""
    return _Counted(rows.order_by().values("pk")[: MOST + 1])


def by_status(items: QuerySet[WorkItem]) -> dict[str, Subquery]:
    """How many items have which status. Parts of a statement."""
    return {
        status: counted(items.filter(status=status))
        for status in WorkItem.Status.values
    }


def read(parts: Mapping[str, Subquery]) -> dict[str, Any]:
    """All parts in one statement, on the platform's row: there is always one."""
    platform = Tenant.objects.filter(is_platform=True).order_by()
    return dict(platform.values(**parts).get())


def shown(count: int) -> str:
    """37, 10,000+."""
    return f"{MOST:,}+" if count > MOST else f"{count:,}"
