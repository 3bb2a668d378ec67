"""filters: what the list of items can be asked, over the URL."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet

from audit import clock
from audit.filters import Filters, LengthFilter, TextFilter, WordsFilter
from workqueue.models import WorkItem


class ItemFilters(Filters):
    """What Items can be asked."""

    text = TextFilter(label="Text", method="with_text")
    tenant = WordsFilter(label="Tenant", field_name="tenant_slug")
    handler = WordsFilter(label="Handler")
    status = django_filters.ChoiceFilter(
        label="State", choices=WorkItem.Status, empty_label="Any"
    )
    worker = TextFilter(label="Worker", field_name="node", lookup_expr="istartswith")
    older_than = LengthFilter(label="Enqueued", method="by_age")

    class Meta:
        model = WorkItem
        fields: list[str] = []

    def with_text(
        self, qs: QuerySet[WorkItem], name: str, value: str
    ) -> QuerySet[WorkItem]:
        """Items whose error, reason or own key has the text in it."""
        return qs.filter(
            Q(last_error__icontains=value)
            | Q(held_reason__icontains=value)
            | Q(dedup_key__icontains=value)
        )

    def by_age(
        self, qs: QuerySet[WorkItem], name: str, value: Any
    ) -> QuerySet[WorkItem]:
        """Items enqueued longer ago than this."""
        return qs.filter(enqueued_at__lt=(self.asked_at or clock.now()) - value)
