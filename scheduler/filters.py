"""filters: what the list of ticks can be asked."""

import django_filters
from django.db.models import Q, QuerySet

from audit.filters import Filters, MomentFilter, TextFilter
from scheduler.models import Tick
from workqueue import registry

TROUBLE = {
    "any": Q(blocked__gt=0) | Q(held__gt=0) | Q(missed__gt=0) | Q(still_running__gt=0),
    "blocked": Q(blocked__gt=0),
    "held": Q(held__gt=0),
    "missed": Q(missed__gt=0),
    "still_running": Q(still_running__gt=0),
    "paused": Q(paused__gt=0) | Q(paused_slots__gt=0),
}


class TickFilters(Filters):
    """Handler, trigger, what was not enqueued, term, time."""

    text = TextFilter(label="Handler", method="with_text")
    trigger = django_filters.ChoiceFilter(
        label="Trigger",
        choices=[("slot", "Slot"), ("start", "Start"), ("operator", "Run now")],
        empty_label="Any",
    )
    trouble = django_filters.ChoiceFilter(
        label="With",
        choices=[
            ("any", "anything not enqueued or missed"),
            ("blocked", "tenants blocked or not reached"),
            ("held", "held items"),
            ("missed", "missed slots"),
            ("still_running", "items still running"),
            ("paused", "a pause"),
        ],
        empty_label="Anything",
        method="with_trouble",
    )
    term = django_filters.NumberFilter(label="Term", min_value=1, max_value=2**63 - 1)
    since = MomentFilter(label="Written", field_name="at", lookup_expr="gte")
    until = MomentFilter(label="Written", field_name="at", lookup_expr="lt")

    class Meta:
        model = Tick
        fields: list[str] = []

    def with_text(self, qs: QuerySet[Tick], name: str, value: str) -> QuerySet[Tick]:
        """Ticks of handlers whose key or title has the text in it."""
        wanted = value.casefold()
        keys = [
            key
            for key, row in registry.rows().items()
            if wanted in row.title.casefold()
        ]
        return qs.filter(Q(handler__icontains=value) | Q(handler__in=keys))

    def with_trouble(self, qs: QuerySet[Tick], name: str, value: str) -> QuerySet[Tick]:
        """Ticks that left something out."""
        return qs.filter(TROUBLE[value])
