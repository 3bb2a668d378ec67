"""filters: what the list of notifications can be asked."""

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from audit.filters import Filters, MomentFilter, TextFilter, WordsFilter
from scheduler.handlers.notifications.models import Channel, Notification


class NotificationFilters(Filters):
    """Every filter combines with every other and stands in the URL."""

    text = TextFilter(label="Text", method="with_text")
    state = django_filters.MultipleChoiceFilter(
        label="State",
        choices=Notification.State,
        widget=forms.CheckboxSelectMultiple,
    )
    tenant = WordsFilter(label="Tenant", field_name="tenant__slug")
    channel = TextFilter(label="Channel", field_name="channel__name")
    kind = django_filters.ChoiceFilter(
        label="Kind",
        field_name="channel__kind",
        choices=Channel.Kind,
        empty_label="Any",
    )
    recipient = TextFilter(label="Recipient", lookup_expr="istartswith")
    since = MomentFilter(label="Created", field_name="created_at", lookup_expr="gte")
    until = MomentFilter(label="Created", field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Notification
        fields: list[str] = []

    def with_text(
        self, qs: QuerySet[Notification], name: str, value: str
    ) -> QuerySet[Notification]:
        """Notifications whose subject or last error has the text in it."""
        return qs.filter(Q(subject__icontains=value) | Q(last_error__icontains=value))
